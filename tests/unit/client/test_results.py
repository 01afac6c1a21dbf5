"""client.results: a file that survives crashes and says everything once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from vision_bench.client.results import ResultLine, ResultsFile, compact, read_line, read_results
from vision_bench.errors import InvalidRequest

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
