"""The run folder: readable after anything, never overwritten, never mixed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vision_bench.bench.record import Record
from vision_bench.bench.rundir import RunFolder, read_manifest, read_records, read_steps, write_json
from vision_bench.errors import InvalidRequest, OperatorError


def record(index: int) -> Record:
    return Record(step=1, index=index, ordinal=index, due_ns=10**18 + index, outcome="ok")


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    """Whole nanoseconds, None where nothing was seen, in the order in which they were kept."""
    with RunFolder.create(tmp_path / "run", {"schema": 1}) as run:
        run.keep(record(1))
        run.keep(record(0))
    assert list(read_records(run.path, Record)) == [record(1), record(0)]
    assert read_manifest(run.path) == {"schema": 1}


def test_every_line_is_on_disk_at_once(tmp_path: Path) -> None:
    """A killed process loses no request that was over."""
    with RunFolder.create(tmp_path, {}) as run:
        run.keep(record(0))
        assert len((tmp_path / "records.jsonl").read_bytes().splitlines()) == 1


def test_a_line_cut_by_a_kill_is_left_out_and_then_taken_away(tmp_path: Path) -> None:
    """Reading skips it; going on with the run truncates it, so that the next line is whole."""
    with RunFolder.create(tmp_path, {}) as run:
        run.keep(record(0))
    with (tmp_path / "records.jsonl").open("ab") as file:
        file.write(b'{"step":1,"ind')
    assert list(read_records(tmp_path, Record)) == [record(0)]
    with RunFolder.reopen(tmp_path) as run:
        run.keep(record(1))
    assert list(read_records(tmp_path, Record)) == [record(0), record(1)]


def test_a_file_that_is_half_a_line_and_nothing_else(tmp_path: Path) -> None:
    """Also one that is longer than what is read at a time when the last line end is sought."""
    RunFolder.create(tmp_path, {}).__exit__()
    (tmp_path / "records.jsonl").write_bytes(b"x" * 200_000)
    assert list(read_records(tmp_path, Record)) == []
    with RunFolder.reopen(tmp_path) as run:
        run.keep(record(0))
    assert list(read_records(tmp_path, Record)) == [record(0)]


def test_steps_know_whether_they_ended(tmp_path: Path) -> None:
    """A step is complete when its end says so; cut by a kill it has no end, cut by Ctrl-C one that says no."""
    with RunFolder.create(tmp_path, {}) as run:
        for step in (1, 2, 3):
            run.begin_step(step, {"rate": step})
        run.end_step(1, {"is_complete": True})
        run.note_server(1, {"counters": {"hits": 2}})
        run.end_step(2, {"is_complete": False})
    steps = read_steps(tmp_path)
    assert [(step.step, step.is_complete, step.begin["rate"]) for step in steps] == [
        (1, True, 1),
        (2, False, 2),
        (3, False, 3),
    ]
    assert steps[2].end is None
    assert [step.server and step.server["counters"] for step in steps] == [{"hits": 2}, None, None]


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    """A run's remedy is --resume, another folder's is another name; an empty one is fine."""
    RunFolder.create(tmp_path, {}).__exit__()
    with pytest.raises(InvalidRequest, match="--resume"):
        RunFolder.create(tmp_path, {})
    other = tmp_path / "other"
    other.mkdir()
    RunFolder.create(other, {}).__exit__()
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidRequest, match="is a file"):
        RunFolder.create(tmp_path / "file", {})


def test_only_a_run_can_be_gone_on_with(tmp_path: Path) -> None:
    """A folder without a manifest, or with something else in its place."""
    with pytest.raises(InvalidRequest, match="no run folder"):
        RunFolder.reopen(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(InvalidRequest, match="no run folder"):
        RunFolder.reopen(tmp_path)


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that took only half of a line is taken back, and the message says what to do."""
    with RunFolder.create(tmp_path, {}) as run:
        run.keep(record(0))

        class Full:
            """The file when the disk has room for five more bytes."""

            def __init__(self, real: object) -> None:
                self.real = real

            def write(self, data: bytes) -> int:
                return self.real.write(data[:5])  # type: ignore[attr-defined, no-any-return]

            def __getattr__(self, name: str) -> object:
                return getattr(self.real, name)

        monkeypatch.setattr(run._records, "_file", Full(run._records._file))
        with pytest.raises(OperatorError, match="free space"):
            run.keep(record(1))
    assert list(read_records(tmp_path, Record)) == [record(0)]


def test_json_is_put_in_place_whole_and_strict(tmp_path: Path) -> None:
    """What cannot be written leaves the earlier file and no temporary one."""
    path = tmp_path / "summary.json"
    write_json(path, {"text": "한국어"})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, {"p99": float("inf")})
    assert json.loads(path.read_bytes()) == {"text": "한국어"}
    assert list(tmp_path.iterdir()) == [path]


def test_a_record_of_another_kind_is_named(tmp_path: Path) -> None:
    """File and line."""
    RunFolder.create(tmp_path, {}).__exit__()
    (tmp_path / "records.jsonl").write_bytes(b'{"step": "one"}\n')
    with pytest.raises(InvalidRequest, match="line 1"):
        list(read_records(tmp_path, Record))
