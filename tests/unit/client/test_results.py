"""client.results: a file that survives crashes and says everything once."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import BinaryIO

import pytest

from vision_bench.client.results import ResultLine, ResultsFile, read_line, read_results
from vision_bench.errors import InvalidRequest, InvalidSettings
from vision_bench.wire.shapes import MAX_DEPTH, parse_json

LINE = ResultLine(
    clip="data/a.mp4",
    clip_id="a",
    sha256="00",
    model="qwen",
    fps=2.0,
    use_audio_in_video=True,
    status=200,
    outcome="ok",
    result={"scene": "야구"},
    error=None,
    raw=None,
    warnings=("no_audio",),
    elapsed_ms=12,
    usage={"prompt_tokens": 1},
    request_id="f00d-1-0",
)


def write(path: Path, *lines: ResultLine) -> None:
    with ResultsFile(path) as file:
        for line in lines:
            file.append(line)


def compact(path: Path) -> None:
    with ResultsFile(path) as file:
        file.compact()


def test_a_line_has_exactly_the_documented_keys_in_their_order(tmp_path: Path) -> None:
    """Other tools read these names."""
    write(tmp_path / "r.ndjson", LINE)
    record = json.loads((tmp_path / "r.ndjson").read_text("utf-8"))
    assert list(record) == [
        *("clip", "clip_id", "sha256", "model", "fps", "use_audio_in_video", "status", "outcome", "result", "error"),
        *("raw", "warnings", "elapsed_ms", "usage", "request_id"),
    ]
    assert read_line(record) == LINE


def test_a_line_is_on_disk_before_the_file_is_closed(tmp_path: Path) -> None:
    """A crash after an answer does not lose the answer."""
    with ResultsFile(tmp_path / "r.ndjson") as file:
        file.append(LINE)
        assert read_results(tmp_path / "r.ndjson").lines == (LINE,)


def test_half_a_last_line_is_cut_off_and_the_rest_kept(tmp_path: Path) -> None:
    """The next run appends to a whole line."""
    path = tmp_path / "r.ndjson"
    write(path, LINE)
    with path.open("ab") as file:
        file.write(b'{"clip": "data/b.mp4", "outc')
    assert read_results(path).unreadable == 1
    write(path, replace(LINE, clip="data/c.mp4"))
    results = read_results(path)
    assert [line.clip for line in results.lines] == ["data/a.mp4", "data/c.mp4"] and results.unreadable == 0


@pytest.mark.parametrize("start", [b"", b'{"clip": "x", "outcome": "ok"}\n'])
def test_whole_last_line_without_its_end_is_kept_and_half_a_first_line_goes(tmp_path: Path, start: bytes) -> None:
    """Only what is not JSON is cut."""
    path = tmp_path / "r.ndjson"
    path.write_bytes(start + b'{"clip": "y", "outcome": "ok"}')
    write(path)
    assert path.read_bytes() == start + b'{"clip": "y", "outcome": "ok"}\n'
    path.write_bytes(start + b'{"clip": "y", "ou')
    write(path)
    assert path.read_bytes() == start


def test_the_last_line_of_a_clip_and_question_counts(tmp_path: Path) -> None:
    """A retry replaces the failure; another question's answer stands beside it."""
    path = tmp_path / "r.ndjson"
    failed = replace(LINE, outcome="length", result=None)
    other = replace(LINE, request_id="beef-1-0")
    write(path, failed, other, LINE)
    assert read_results(path).lines == (LINE, other)
    compact(path)
    assert path.read_bytes().count(b"\n") == 2
    assert read_results(path).lines == (LINE, other)
    assert [file.name for file in tmp_path.iterdir()] == ["r.ndjson"]


def test_compact_leaves_a_clean_file_alone(tmp_path: Path) -> None:
    """No rewrite without need."""
    path = tmp_path / "r.ndjson"
    write(path, LINE)
    before = path.stat().st_ino
    compact(path)
    assert path.stat().st_ino == before


def test_damage_costs_only_the_lines_it_hit(tmp_path: Path) -> None:
    """And is counted."""
    path = tmp_path / "r.ndjson"
    write(path, LINE)
    path.write_bytes(b"\x00\xff garbage\n[1]\n{}\n" + path.read_bytes())
    results = read_results(path)
    assert results.lines == (LINE,) and results.unreadable == 3


@pytest.mark.parametrize("content", [b"my notes", b"my notes\n", b'{"clip": "x", "outcome": "ok"}\nnotes', b"[1]\n"])
def test_somebody_elses_file_is_refused_and_not_touched(tmp_path: Path, content: bytes) -> None:
    """A mistyped --out costs nothing."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(InvalidRequest, match="not a results file"):
        ResultsFile(path)
    assert path.read_bytes() == content


def test_compact_leaves_a_file_with_odd_lines_alone(tmp_path: Path) -> None:
    """What cannot be read is not thrown away."""
    path = tmp_path / "r.ndjson"
    write(path, LINE, LINE)
    path.write_bytes(path.read_bytes() + b"odd\n")
    before = path.read_bytes()
    compact(path)
    assert path.read_bytes() == before


def test_absent_file_is_named(tmp_path: Path) -> None:
    """The error says which."""
    with pytest.raises(InvalidRequest, match=r"none\.ndjson"):
        read_results(tmp_path / "none.ndjson")


def test_a_file_has_one_writer_and_compaction_keeps_it_so(tmp_path: Path) -> None:
    """Nobody appends to a file that is being replaced; a second run is refused before and after."""
    path = tmp_path / "r.ndjson"
    with ResultsFile(path) as first:
        first.append(replace(LINE, outcome="length"))
        first.append(LINE)
        for _ in range(2):
            with pytest.raises(InvalidRequest, match=r"another run is writing .*r\.ndjson"):
                ResultsFile(path)
            first.compact()
        first.append(replace(LINE, clip="data/b.mp4"))
    write(path, replace(LINE, clip="data/c.mp4"))
    assert [line.clip for line in read_results(path).lines] == ["data/a.mp4", "data/b.mp4", "data/c.mp4"]
    assert [file.name for file in tmp_path.iterdir()] == ["r.ndjson"]


def test_a_writer_that_waited_for_a_replaced_file_writes_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is on the file that has the name, however late it changed."""
    path = tmp_path / "r.ndjson"
    write(path, LINE, LINE)
    real = fcntl.flock

    def late(file: BinaryIO, operation: int) -> None:
        monkeypatch.undo()
        compact(path)
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    write(path, replace(LINE, clip="data/b.mp4"))
    assert [line.clip for line in read_results(path).lines] == ["data/a.mp4", "data/b.mp4"]


def test_the_lock_ends_with_the_refused_writer_too(tmp_path: Path) -> None:
    """Somebody else's file is not kept locked by the run that refused it."""
    path = tmp_path / "notes.txt"
    path.write_bytes(b"my notes")
    for _ in range(2):
        with pytest.raises(InvalidRequest, match="not a results file"):
            ResultsFile(path)


@pytest.mark.parametrize("place", ["file/r.ndjson", "x" * 300, "/proc/nothing/r.ndjson", "folder"])
def test_what_cannot_be_written_is_named_with_the_way_out(tmp_path: Path, place: str) -> None:
    """A file for a folder, a name too long, a place without permission, a folder."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises((InvalidSettings, InvalidRequest), match="--out"):
        ResultsFile(tmp_path / place)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Met in the middle of a run."""
    with ResultsFile(tmp_path / "r.ndjson") as file, Path("/dev/full").open("ab", buffering=0) as full:
        monkeypatch.setattr(file, "_file", full)
        with pytest.raises(InvalidSettings, match=r"No space left.*--out"):
            file.append(LINE)


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_only_regular_files_are_read_and_written(tmp_path: Path, kind: str) -> None:
    """A pipe or a device would be read for ever."""
    path = tmp_path / "r.ndjson"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    for use in (read_results, ResultsFile):
        with pytest.raises(InvalidRequest, match="no regular file"):
            use(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("usage", value) for value in ("x", [1], {"prompt_tokens": "many"}, {"completion_tokens": 1e400})),
        *(("elapsed_ms", value) for value in ("fast", True, -1, 10**400, float("nan"), float("inf"))),
        *(("warnings", value) for value in (5, "ab", {"a": 1}, [5], [None])),
        *(("result", value) for value in ("str", [1])),
        *((name, value) for name in ("model", "request_id", "clip", "error", "raw", "clip_id") for value in (7, ["a"])),
        *(("fps", "2"), ("status", "200"), ("use_audio_in_video", "no"), ("sha256", 5), ("outcome", {})),
    ],
)
def test_a_line_of_other_types_is_unreadable(tmp_path: Path, field: str, value: object) -> None:
    """It is counted as such, and nothing that reads results meets it."""
    path = tmp_path / "r.ndjson"
    path.write_text(json.dumps(asdict(LINE) | {field: value}) + "\n" + json.dumps(asdict(LINE)) + "\n")
    results = read_results(path)
    assert results.lines == (LINE,) and results.unreadable == 1


def test_nesting_is_read_as_deep_as_answers_are_and_no_deeper(tmp_path: Path) -> None:
    """The deepest answer that is accepted can be read back; what is deeper costs only its line."""
    path = tmp_path / "r.ndjson"
    deepest = parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    write(path, replace(LINE, result={"value": deepest}))
    path.write_bytes(path.read_bytes() + b'{"clip":"b","outcome":"ok","result":{"a":' + b"[" * 5000 + b"\n")
    assert read_results(path).unreadable == 1 and read_results(path).lines[0].result == {"value": deepest}
