"""`vision-bench prepare` and script/prepare_data.sh as a user runs them: what they print and how they end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.integration.numbered_film import constant_times, write_film

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """14.5 s at 24 frames a second."""
    return write_film(tmp_path_factory.mktemp("film") / "film.mp4", constant_times(Fraction(24), 14.5))


def prepare(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vision_bench.cli", "prepare", *map(str, arguments)]
    settings = {name: value for name, value in os.environ.items() if name != "DATA_DIR"} | environment
    return subprocess.run(
        command, cwd=cwd, env=settings, capture_output=True, text=True, check=False, timeout=120, encoding="utf-8"
    )


def test_all_asked_for_are_there(film: Path, tmp_path: Path) -> None:
    """Exit 0; the final table has the category, the genre, the size and the total; data/ is the default place."""
    done = prepare(film, "--category", "docu", "--start", 0, "--end", 12, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "film.mp4: 2 clips made of 2; in data/clips/docu/film" in done.stderr
    for word in ("docu", "Documentary", "192x64", "24", "libopenh264", "Total", "1 source"):
        assert word in done.stdout
    assert sorted(path.name for path in (tmp_path / "data/clips/docu/film").iterdir()) == [
        "0001_0000-0006.mp4",
        "0002_0006-0012.mp4",
        "clips.json",
    ]
    assert [path.name for path in (tmp_path / "data/blackout/docu/film").iterdir()] == ["0001_0000-0006.mp4"]


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        ([], "0 clips made of 100"),
        (["--start", "0", "--end", "18"], "3 clips made of 3, the last of 2.50 s"),
        (["--start", "6", "--end", "60"], "2 clips made of 9"),
    ],
)
def test_a_short_source_ends_with_3(film: Path, tmp_path: Path, arguments: list[str], made: str) -> None:
    """What could be made is counted against what was asked, on one line that says how long the source is."""
    done = prepare(film, "--category", "docu", *arguments, cwd=tmp_path)
    assert done.returncode == 3
    assert f"film.mp4: source too short (14.50 s): {made}" in done.stderr


def test_json_is_one_object_and_alone_on_stdout(film: Path, tmp_path: Path) -> None:
    """Everything else goes to stderr; DATA_DIR moves the clips."""
    done = prepare(
        film, "--category", "news", "--start", 0, "--end", 6, "--json", cwd=tmp_path, DATA_DIR=str(tmp_path / "else")
    )
    found: dict[str, Any] = json.loads(done.stdout)
    (source,) = found["sources"]
    assert (source["scene"], source["made"], source["asked"], source["failed"]) == ("news/film", 1, 1, [])
    assert source["manifest"]["settings"]["encoder"] == "libopenh264"
    assert source["manifest"]["settings"]["encoder_version"].startswith("ffmpeg ")
    assert source["manifest"] == json.loads((tmp_path / "else/clips/news/film/clips.json").read_text())
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["film.mp4", "--category", "sport"], "no category 'sport'; choose one of: baseball, docu"),
        (["film.mp4"], "give SRC with --category, or --all"),
        (["--all", "film.mp4", "--category", "docu"], "give SRC with --category, or --all"),
        (["none.mp4", "--category", "docu"], "none.mp4: no such file; looked at none.mp4"),
        (["film.mp4", "--category", "docu", "--end", "x"], "Invalid value for '--end'"),
        (["film.mp4", "--category", "docu", "--start", "9", "--end", "9"], "give 0 <= start < end"),
        (["film.mp4", "--category", "docu", "--bitrate", "fast"], "write 1500k, 1.5M or 1500000"),
        (["film.mp4", "--category", "docu", "--encoder", "x265"], "choose one of: auto, libopenh264, libx264"),
    ],
)
def test_what_cannot_be_meant_ends_with_2(film: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    """A wrong name, a missing file, a range that holds nothing: one line, no traceback, nothing written."""
    shutil.copy(film, tmp_path / "film.mp4")
    done = prepare(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_folder_that_cannot_be_made_ends_with_4(film: Path, tmp_path: Path) -> None:
    """data/clips is a file: who runs the machine is told which, and what to do."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "clips").write_text("in the way")
    done = prepare(film, "--category", "docu", "--start", 0, "--end", 6, cwd=tmp_path)
    assert done.returncode == 4
    assert "give another --data-dir" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_run_on_one_scene_is_refused_while_the_first_cuts(film: Path, tmp_path: Path) -> None:
    """Exit 4 and the folder's name; a first run that was killed holds nothing."""
    folder = tmp_path / "data/clips/docu/film"
    hold = "import sys, time; from pathlib import Path; from vision_bench.media.lock import only_run_in\n"
    hold += "with only_run_in(Path(sys.argv[1])): print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", hold, str(folder)], stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        first.stdout.readline()
        arguments = (film, "--category", "docu", "--start", 0, "--end", 6, "--no-blackout")
        done = prepare(*arguments, cwd=tmp_path)
        assert list(folder.iterdir()) == []
        first.kill()
    assert done.returncode == 4
    assert "another prepare is cutting into data/clips/docu/film; wait for it" in done.stderr
    assert prepare(*arguments, cwd=tmp_path).returncode == 0


def test_all_targets_skip_what_is_missing_and_go_on_past_what_is_broken(film: Path, tmp_path: Path) -> None:
    """One good source, one broken, five missing: the good one is made, each of the others is named, exit 3."""
    for category, name in (("docu", "docu.mp4"), ("esports", "lol.mp4")):
        (tmp_path / "data/raw" / category).mkdir(parents=True)
        shutil.copy(film, tmp_path / "data/raw" / category / name)
    (tmp_path / "data/raw/docu/docu.mp4").write_bytes(b"")
    done = prepare("--all", "--start", 0, "--end", 6, "--json", cwd=tmp_path)
    assert done.returncode == 3
    found = json.loads(done.stdout)
    assert [source["scene"] for source in found["sources"]] == ["esports/lol"]
    assert len(found["missing"]) == 6
    assert "source not found, skipping: data/raw/news/news.mp4" in done.stderr
    assert "docu.mp4: the file is empty" in done.stderr


def test_no_target_at_all_ends_with_4(tmp_path: Path) -> None:
    """Nothing could be done."""
    done = prepare("--all", cwd=tmp_path)
    assert done.returncode == 4
    assert done.stderr.count("source not found") == 7


def test_the_script_takes_a_category_and_a_file(film: Path, tmp_path: Path) -> None:
    """script/prepare_data.sh docu NAME reads data/raw/docu/NAME below DATA_DIR; further options go through."""
    raw = tmp_path / "raw" / "docu"
    raw.mkdir(parents=True)
    shutil.copy(film, raw / "-odd name.mp4")
    script = [str(ROOT / "script" / "prepare_data.sh"), "docu", "-odd name.mp4", "--start", "0", "--end", "6"]
    environment = os.environ | {
        "DATA_DIR": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "clips/docu/-odd name/0001_0000-0006.mp4").is_file()
    assert subprocess.run(script[:2], capture_output=True, check=False, timeout=30).returncode == 2


@pytest.mark.parametrize("encoder", ["libopenh264", "libx264"])
def test_an_interrupt_ends_all_it_started(film: Path, tmp_path: Path, encoder: str) -> None:
    """SIGINT in the middle: exit 130, no process of its session left, no temporary file; the next run finishes."""
    arguments = ["--category", "docu", "--start", "0", "--end", "14", "--length", "0.25", "--encoder", encoder]
    command = [sys.executable, "-m", "vision_bench.cli", "prepare", str(film), *arguments, "--jobs", "2"]
    folder = tmp_path / "data/clips/docu/film"
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not (folder / "clips.json").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert session_members(process.pid) == []
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    done = prepare(film, *arguments, "--json", cwd=tmp_path)
    (source,) = json.loads(done.stdout)["sources"]
    assert (done.returncode, source["made"]) == (0, 56)
    assert source["reused"] >= 1


def session_members(session: int) -> list[int]:
    """Processes of a session that are still there, by /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found
