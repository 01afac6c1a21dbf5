"""``results.ndjson``: one line a clip, appended as answers come, readable after any crash.

A run that asks again appends; for each clip and question the last line counts. `compact` leaves only those.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vision_bench.errors import InvalidRequest
from vision_bench.wire.ndjson import dump_line


@dataclass(frozen=True, slots=True)
class ResultLine:
    """What became of one clip.

    Args:
        clip: path as given; ``clip_id`` is its name without the ending.
        sha256: of the clip's bytes.
        fps: frames a second asked for; None where a count was asked for, or pictures were sent.
        status: HTTP status of the item; None when no answer came.
        outcome: ``ok``, or the one word that counts this failure.
        result: the answer's object, for free text ``{"text": …}``.
        raw: the answer's text where ``result`` does not hold all of it.
        elapsed_ms: the server's time for the item as the gateway measured it.
        request_id: what the gateway's log calls the item. Its first part is the fingerprint of question and settings.
    """

    clip: str
    clip_id: str
    sha256: str | None
    model: str
    fps: float | None
    use_audio_in_video: bool
    status: int | None
    outcome: str
    result: dict[str, Any] | None
    error: str | None
    raw: str | None
    warnings: tuple[str, ...]
    elapsed_ms: float | None
    usage: dict[str, Any] | None
    request_id: str | None

    @property
    def fingerprint(self) -> str:
        """Of the question and settings this line answers."""
        return (self.request_id or "").partition("-")[0]

    @property
    def is_ok(self) -> bool:
        """Whether a second run may leave this clip alone."""
        return self.outcome == "ok"


_START = b'{"clip":'
"""What every line starts with."""

_FIELDS = tuple(field.name for field in fields(ResultLine))


def read_line(record: dict[str, Any]) -> ResultLine:
    """A line's object. A field that is not there is None; one that is not known is left out.

    Raises:
        ValueError: no ``clip`` or no ``outcome``: the line is of another kind.
    """
    if not isinstance(record.get("clip"), str) or not isinstance(record.get("outcome"), str):
        raise ValueError("not a line of an analysis: it has no 'clip' and 'outcome'")
    values: dict[str, Any] = {name: record.get(name) for name in _FIELDS}
    values["clip_id"] = values["clip_id"] or Path(record["clip"]).stem
    values["warnings"] = tuple(map(str, values["warnings"] or ()))
    values["use_audio_in_video"] = bool(values["use_audio_in_video"])
    values["model"] = values["model"] or ""
    return ResultLine(**values)


@dataclass(frozen=True, slots=True)
class Results:
    """The lines of a file that count, in order of their first appearance, and how many could not be read."""

    lines: tuple[ResultLine, ...]
    unreadable: int = 0


def read_results(path: Path) -> Results:
    """Read a results file. Half a last line, or damage in the middle, costs only the lines it hit.

    Raises:
        InvalidRequest: the file cannot be opened.
    """
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise InvalidRequest(f"cannot read results file {path}: {problem}") from problem
    latest: dict[tuple[str, str], ResultLine] = {}
    unreadable = 0
    for raw in data.split(b"\n"):
        if not raw.strip():
            continue
        try:
            line = read_line(json.loads(raw))
        except (ValueError, AttributeError):
            unreadable += 1
            continue
        latest[line.clip, line.fingerprint] = line
    return Results(tuple(latest.values()), unreadable)


class ResultsFile:
    """Appends lines; each is handed to the operating system before `append` returns.

    Raises:
        InvalidRequest: the file is there and holds something else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _mend_end(path)
        self._file = path.open("ab")

    def append(self, line: ResultLine) -> None:
        """Write one line in one go."""
        self._file.write(dump_line(asdict(line)))
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._file.close()


def compact(path: Path) -> None:
    """Leave one line a clip and question: the last. The file is replaced whole or not at all.

    A file with lines that cannot be read is left as it is: they may be worth a look.
    """
    results = read_results(path)
    if results.unreadable or path.read_bytes().count(b"\n") == len(results.lines):
        return
    write_results(path, results.lines)


def write_results(path: Path, lines: Iterable[ResultLine]) -> None:
    """Write a whole results file under a temporary name, then move it into place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines(dump_line(asdict(line)) for line in lines)
        temporary.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def _mend_end(path: Path) -> None:
    """Give the last line its end, or cut it off when it is only half there. Somebody else's file is left alone."""
    data = path.read_bytes()
    whole, newline, last = data.rpartition(b"\n")
    for line in (data, last):
        if line[: len(_START)] != _START[: len(line)]:
            raise InvalidRequest(f"{path} is not a results file; name another with --out")
    if not last:
        return
    try:
        json.loads(last)
    except ValueError:
        with path.open("r+b") as file:
            file.truncate(len(whole) + len(newline))
        return
    with path.open("ab") as file:
        file.write(b"\n")
