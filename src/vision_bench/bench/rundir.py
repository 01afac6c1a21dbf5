"""The run folder: manifest.json, steps.jsonl, records.jsonl, summary.json.

Lines are written as things happen, each in one call, so that a killed run is readable to its last request. JSON files
are put in place whole. A step has a line when it begins and one when it ends; a step without its second line was cut
off, and ``--resume`` runs it again under a new number: nothing is overwritten, nothing is mixed.
"""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from vision_bench.bench.record import Record
from vision_bench.drafts import write_whole
from vision_bench.errors import InvalidRequest, OperatorError

MANIFEST = "manifest.json"
STEPS = "steps.jsonl"
RECORDS = "records.jsonl"
SUMMARY = "summary.json"
STUDY = "study.json"
"""Of a folder that holds run folders instead: an envelope study, as it was asked for."""

R = TypeVar("R", bound=Record)
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StepLog:
    """What the folder says of one step: the lines of its begin and end, and of what the server told of it."""

    step: int
    begin: Json
    end: Json | None
    server: Json | None = None

    @property
    def is_complete(self) -> bool:
        """It ran to its end."""
        return self.end is not None and bool(self.end.get("is_complete"))


class RunFolder:
    """A run folder that is written. Use it as a context manager.

    Raises (any writing method):
        OperatorError: the disk took it no more; what was written before is whole.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records = LineFile(path / RECORDS)
        self._steps = LineFile(path / STEPS)

    @classmethod
    def create(cls, path: Path, manifest: Mapping[str, Any]) -> Self:
        """Begin a run.

        Raises:
            InvalidRequest: the folder holds something already, or is a file.
        """
        check_new(path)
        _guarded(path, lambda: path.mkdir(parents=True, exist_ok=True))
        write_json(path / MANIFEST, manifest)
        return cls(path)

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """Go on with a run that was cut off.

        Raises:
            InvalidRequest: no run folder.
        """
        read_manifest(path)
        return cls(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._records.close()
        self._steps.close()

    def keep(self, record: Record) -> None:
        """Append one request."""
        self._records.append(msgspec.json.encode(record))

    def begin_step(self, step: int, facts: Mapping[str, Any]) -> None:
        """Note that a step begins, with what it was meant to be."""
        self._steps.append(msgspec.json.encode({"step": step, "event": "begin", **facts}))

    def end_step(self, step: int, facts: Mapping[str, Any]) -> None:
        """Note that a step is over, with what the driver knows of it."""
        self._steps.append(msgspec.json.encode({"step": step, "event": "end", **facts}))

    def note_server(self, step: int, facts: Mapping[str, Any]) -> None:
        """Note what the server counted in a step."""
        self._steps.append(msgspec.json.encode({"step": step, "event": "server", **facts}))


class LineFile:
    """A file of lines, each written in one call; a line that did not fit is taken back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: io.FileIO = _guarded(path, lambda: path.open("ab+", buffering=0))
        self._size_bytes = _whole_lines_bytes(path)
        self._file.truncate(self._size_bytes)  # a killed run may have left half a line

    def append(self, line: bytes) -> None:
        """Write one line; its end is added."""
        data = line + b"\n"
        try:
            written = self._file.write(data)
        except OSError as problem:
            self._take_back(problem)
        if written != len(data):
            self._take_back(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        self._size_bytes += len(data)

    def _take_back(self, problem: OSError) -> None:
        self._file.truncate(self._size_bytes)
        raise _cannot_write(self._path, problem) from problem

    def close(self) -> None:
        """Let the file go."""
        self._file.close()


def check_new(path: Path) -> None:
    """Raises InvalidRequest unless ``path`` is a folder that is new or empty."""
    if path.is_dir() and any(path.iterdir()):
        has_run = (path / MANIFEST).is_file()
        remedy = "go on with it by --resume, or give another --out" if has_run else "give another --out"
        raise InvalidRequest(f"{path} is not empty; {remedy}")
    if path.exists() and not path.is_dir():
        raise InvalidRequest(f"{path} is a file; give a folder as --out")


def is_run_folder(path: Path) -> bool:
    """Whether ``path`` holds a run, whole or cut off."""
    return (path / MANIFEST).is_file()


def read_manifest(path: Path) -> Json:
    """The manifest of a run.

    Raises:
        InvalidRequest: ``path`` is no run folder.
    """
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
    except (OSError, ValueError) as problem:
        raise InvalidRequest(f"{path} is no run folder: its {MANIFEST} cannot be read ({problem})") from problem
    if not isinstance(manifest, dict):
        raise InvalidRequest(f"{path} is no run folder: its {MANIFEST} is no object")
    return manifest


def read_steps(path: Path) -> list[StepLog]:
    """Every step that was begun, in order."""
    events: dict[str, dict[int, Json]] = {"begin": {}, "end": {}, "server": {}}
    for line in lines(path / STEPS):
        facts = json.loads(line)
        events[facts["event"]][facts["step"]] = facts
    return [
        StepLog(step, begin, events["end"].get(step), events["server"].get(step))
        for step, begin in events["begin"].items()
    ]


def read_records(path: Path, kind: type[R]) -> Iterator[R]:
    """Every request that was over, in the order in which they were over.

    Raises:
        InvalidRequest: a line that is no record of this kind.
    """
    decoder = msgspec.json.Decoder(kind)
    for number, line in enumerate(lines(path / RECORDS), start=1):
        try:
            yield decoder.decode(line)
        except msgspec.MsgspecError as problem:
            raise InvalidRequest(f"{path / RECORDS} line {number} is no record: {problem}") from problem


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Put a strict JSON file in place whole.

    Raises:
        OperatorError: it cannot be written.
    """
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    _guarded(path, lambda: write_whole(path, text))


def lines(path: Path) -> Iterator[bytes]:
    r"""Whole lines; one without its ``\n`` at the end was being written when the run was killed."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line


def _whole_lines_bytes(path: Path) -> int:
    """Size of the file up to its last line end."""
    size_bytes = path.stat().st_size
    with path.open("rb") as file:
        end = size_bytes
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            at = file.read(end - start).rfind(b"\n")
            if at >= 0:
                return start + at + 1
            end = start
    return 0


T = TypeVar("T")


def _guarded(path: Path, act: Any) -> Any:
    try:
        return act()
    except OSError as problem:
        raise _cannot_write(path, problem) from problem


def _cannot_write(path: Path, problem: OSError) -> OperatorError:
    return OperatorError(
        f"{path} cannot be written ({problem.strerror or problem}); free space or give another --out. What was "
        "written before is whole: --resume goes on from there"
    )
