"""The verbs analyze, report, doctor and purge as a user runs them, in this process."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.integration.gateway_rig import gateway
from tests.integration.stub_upstream import answers, stub_upstream
from tests.integration.test_analyze_run import reply
from tests.integration.tiny_clips import tiny_clip, write_clips

from vision_bench.cli.analyze import command as analyze
from vision_bench.cli.doctor import command as doctor
from vision_bench.cli.purge import command as purge
from vision_bench.cli.report import command as report
from vision_bench.client.analyze import analyze_clips
from vision_bench.client.sources import find_clips
from vision_bench.errors import InvalidRequest


def run(verb: Any, *arguments: str | Path) -> Result:
    """The command's result, its returned status as the exit code; errors of ours are raised."""
    result = CliRunner().invoke(verb, [str(part) for part in arguments], standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    result.exit_code = result.return_value or 0
    return result


@pytest.fixture
def server() -> Iterator[str]:
    """A gateway before a stub that gives good answers, in a loop of its own."""
    started, stop = threading.Event(), asyncio.Event()
    found: dict[str, Any] = {}

    async def serve() -> None:
        async with stub_upstream(answers(reply())) as stub, gateway(stub) as rig:
            found.update(url=rig.url, loop=asyncio.get_running_loop())
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(20)
    yield found["url"]
    found["loop"].call_soon_threadsafe(stop.set)
    thread.join(20)


def test_analyze_then_report(tmp_path: Path, server: str) -> None:
    """Clips in, a results file, a page with a picture a clip."""
    write_clips(tmp_path / "clips", 3)
    out = tmp_path / "runs" / "results.ndjson"
    done = run(analyze, tmp_path / "clips", "--gateway", server, "--out", out, "--json")
    assert done.exit_code == 0
    summary = json.loads(done.stdout)  # one object and nothing else, so that it can be piped
    assert (summary["clips"], summary["ok"], summary["failed"]) == (3, 3, 0)
    made = run(report, out.parent, "--credit", "Somebody, CC BY 3.0", "--json")
    page = (out.parent / "report.html").read_text("utf-8")
    assert json.loads(made.stdout)["clips"] == 3
    assert page.count("data:image/jpeg;base64,") == 3 and "Somebody, CC BY 3.0" in page
    run(report, out, "--no-media", "--out", tmp_path / "bare.html")
    assert "data:image" not in (tmp_path / "bare.html").read_text("utf-8")


@pytest.mark.debian("chromium")
def test_the_page_works_in_a_browser(tmp_path: Path, server: str) -> None:
    """Its policy lets its own script run: the filter counts the cards."""
    chromium = shutil.which("chromium")
    assert chromium, "chromium is missing: apt-get install chromium"
    out = tmp_path / "results.ndjson"
    run(analyze, *write_clips(tmp_path / "clips", 3), "--gateway", server, "--out", out)
    run(report, out)
    page = (tmp_path / "report.html").as_uri()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    shown = subprocess.run([chromium, *flags, page], capture_output=True, text=True, timeout=120, check=True).stdout
    assert "3 of 3 clips" in shown and '<div class="filter">' in shown


def test_a_program_that_is_not_async_uses_the_same_function(tmp_path: Path, server: str) -> None:
    """The ten lines of the documentation."""
    summary = analyze_clips(write_clips(tmp_path / "clips", 2), gateway=server, out=tmp_path / "results.ndjson")
    assert (summary.ok, summary.clips, summary.latency_ms.count) == (2, 2, 2)


def test_exit_codes_tell_what_happened(tmp_path: Path, server: str) -> None:
    """3 some clips failed, 4 nobody answers or no clip at all."""
    clips = write_clips(tmp_path / "clips", 2)
    clips[1].write_bytes(b"")
    assert run(analyze, *clips, "--gateway", server, "--out", tmp_path / "a.ndjson").exit_code == 3
    gone = run(analyze, clips[0], "--gateway", "http://127.0.0.1:9", "--out", tmp_path / "b.ndjson")
    assert gone.exit_code == 4 and "127.0.0.1:9" in gone.stderr
    (tmp_path / "empty").mkdir()
    assert run(analyze, tmp_path / "empty", "--gateway", server).exit_code == 4
    with pytest.raises(InvalidRequest, match="exclude each other"):
        run(analyze, clips[0], "--fps", "2", "--num-frames", "4")


def test_a_film_that_was_never_cut_is_cut_on_the_fly(tmp_path: Path, server: str) -> None:
    """Its clips land below DATA_DIR, each has its line; a second run cuts and sends nothing."""
    film = tmp_path / "my film.mp4"
    film.write_bytes(tiny_clip(seconds=14))
    out = tmp_path / "r.ndjson"
    command = (film, "--gateway", server, "--out", out, "--data-dir", tmp_path / "data", "--json")
    first, second = run(analyze, *command), run(analyze, *command)
    assert json.loads(first.stdout)["outcomes"] == {"ok": 3}
    assert (json.loads(second.stdout)["kept"], json.loads(second.stdout)["outcomes"]) == (3, {})
    assert len(list((tmp_path / "data/clips/adhoc").rglob("*.mp4"))) == 3
    whole = run(analyze, film, "--gateway", server, "--out", tmp_path / "w.ndjson", "--no-cut", "--json")
    assert json.loads(whole.stdout)["clips"] == 1


def test_dry_run_sends_nothing_and_counts(tmp_path: Path) -> None:
    """Bytes exactly, tokens by the rule, no time where none was measured."""
    clips = write_clips(tmp_path / "clips", 2)
    cost = json.loads(run(analyze, *clips, "--dry-run", "--json", "--out", tmp_path / "r.ndjson").stdout)
    encoded = sum(4 * -(-clip.stat().st_size // 3) for clip in clips)
    assert encoded < cost["body_bytes"] < encoded + 2 * 3000
    assert cost["clips"] == 2 and cost["seconds"] is None and cost["measured"] == 0
    assert not (tmp_path / "r.ndjson").exists()


def test_own_prompt_in_a_file_gives_free_text(tmp_path: Path, server: str) -> None:
    """No schema, so whatever comes is an answer."""
    clips = write_clips(tmp_path / "clips", 1)
    (tmp_path / "p.txt").write_text("누가 이기고 있나요?", "utf-8")
    out = tmp_path / "r.ndjson"
    assert run(analyze, *clips, "--gateway", server, "--out", out, "--prompt", tmp_path / "p.txt").exit_code == 0
    assert list(json.loads(out.read_text("utf-8"))["result"]) == ["text"]


def test_folders_are_walked_in_order_and_each_file_is_one_clip(tmp_path: Path) -> None:
    """Named twice is sent once; files that are still being written are left alone."""
    clips = write_clips(tmp_path / "b", 2) + write_clips(tmp_path / "a", 1)
    (tmp_path / "a" / ".0009.tmp.mp4").touch()
    (tmp_path / "a" / "clips.json").write_text("{}")
    assert find_clips([tmp_path, clips[0]]) == [clips[2], clips[0], clips[1]]
    with pytest.raises(InvalidRequest, match="no such file"):
        find_clips([tmp_path / "none"])


def test_doctor_says_what_stands_in_the_way(server: str) -> None:
    """0 when nothing does; 3 when the target is gone."""
    healthy = run(doctor, "--target", server, "--json")
    assert healthy.exit_code == 0 and json.loads(healthy.stdout)["healthy"] is True
    assert run(doctor, "--target", "http://127.0.0.1:9", "--json").exit_code == 3
    table = run(doctor)
    assert table.exit_code == 0 and re.search(r"encoder libx264", table.stdout)


def test_purge_lists_what_went(tmp_path: Path) -> None:
    """By folder and in all; a dry run leaves everything."""
    write_clips(tmp_path / "data" / "clips" / "docu" / "bbb", 2)
    where = ("--data-dir", tmp_path / "data", "--runs-dir", tmp_path / "runs", "--json")
    listed = json.loads(run(purge, "--dry-run", *where).stdout)
    assert listed["files"] == 2 and listed["bytes"] > 0 and (tmp_path / "data/clips/docu/bbb").is_dir()
    gone = json.loads(run(purge, *where).stdout)
    assert gone["bytes"] == listed["bytes"] and not (tmp_path / "data/clips").exists()
