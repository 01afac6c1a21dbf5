"""``results.ndjson``: one line a clip, appended as answers come, readable after any crash.

A run that asks again appends; for each clip and question the last line counts. `ResultsFile.compact` leaves only those.
One run at a time writes a file: it holds the system's lock on it, which ends with the process however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from vision_bench.drafts import replacing
from vision_bench.errors import InvalidRequest, InvalidSettings
from vision_bench.wire.ndjson import dump_line
from vision_bench.wire.shapes import MAX_DEPTH, is_count, parse_json


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


_DEPTH = MAX_DEPTH + 2
"""Of a line: an answer lies within the line's own object, and perhaps under ``value``."""


def _is_amount(value: object) -> bool:
    """A number that can be drawn and summed."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_usage(value: object) -> bool:
    return isinstance(value, dict) and all(map(is_count, (value.get("prompt_tokens"), value.get("completion_tokens"))))


_CHECKS: dict[str, Callable[[object], bool]] = {
    **{name: lambda value: isinstance(value, str) for name in _FIELDS},
    "fps": _is_amount,
    "use_audio_in_video": lambda value: isinstance(value, bool),
    "status": is_count,
    "result": lambda value: isinstance(value, dict),
    "warnings": _is_texts,
    "elapsed_ms": _is_amount,
    "usage": _is_usage,
}
"""What a field that is there must be; text unless said otherwise."""


def read_line(record: object) -> ResultLine:
    """A line's object. A field that is not there is None; one that is not known is left out.

    Raises:
        ValueError: no ``clip`` or no ``outcome``, or a field of another type: the line is of another kind.
    """
    if not isinstance(record, dict) or record.get("clip") is None or record.get("outcome") is None:
        raise ValueError("not a line of an analysis: it has no 'clip' and 'outcome'")
    values: dict[str, Any] = {name: record.get(name) for name in _FIELDS}
    for name, value in values.items():
        if value is not None and not _CHECKS[name](value):
            raise ValueError(f"not a line of an analysis: its {name!r} is no such thing")
    values["clip_id"] = values["clip_id"] or Path(record["clip"]).stem
    values["warnings"] = tuple(values["warnings"] or ())
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
        InvalidRequest: the file cannot be opened, or is no regular file.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe or a device may never end
            raise InvalidRequest(f"{path} is no regular file; name a results file")
        data = path.read_bytes()
    except OSError as problem:
        raise InvalidRequest(f"cannot read results file {path}: {problem}") from problem
    latest: dict[tuple[str, str], ResultLine] = {}
    unreadable = 0
    for raw in data.split(b"\n"):
        if not raw.strip():
            continue
        try:
            line = read_line(parse_json(raw, max_depth=_DEPTH))
        except ValueError:
            unreadable += 1
            continue
        latest[line.clip, line.fingerprint] = line
    return Results(tuple(latest.values()), unreadable)


class ResultsFile:
    """Appends lines; each is handed to the operating system before `append` returns. Locks the file until closed.

    Raises:
        InvalidRequest: the file is there and holds something else, or another run is writing it.
        InvalidSettings: the file cannot be written; `append` and `compact` too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with _writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():
                raise InvalidRequest(f"{path} is no regular file; name another with --out")
            self._file = _open_locked(path)
            try:
                _mend_end(path)
            except BaseException:
                self._file.close()
                raise

    def append(self, line: ResultLine) -> None:
        """Write one line in one go."""
        waiting = memoryview(dump_line(asdict(line)))
        with _writing(self._path):
            while waiting:
                waiting = waiting[self._file.write(waiting) :]

    def compact(self) -> None:
        """Leave one line a clip and question: the last. The file is replaced whole or not at all.

        A file with lines that cannot be read is left as it is: they may be worth a look.
        """
        results = read_results(self._path)
        if results.unreadable or self._path.read_bytes().count(b"\n") == len(results.lines):
            return
        with _writing(self._path), replacing(self._path) as draft:
            draft.write_bytes(b"".join(dump_line(asdict(line)) for line in results.lines))
            compacted = _open_locked(draft)  # before it has the name: no other run can come between
        self._file.close()
        self._file = compacted

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._file.close()


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """What the system says against writing ``path``, as an error of ours."""
    try:
        yield
    except OSError as problem:
        place = problem.filename or path
        raise InvalidSettings(
            f"cannot write results file {path} ({place}: {problem.strerror or problem}); free it, or give another --out"
        ) from problem


def _open_locked(path: Path) -> BinaryIO:
    """``path`` opened to append, unbuffered, and locked until it is closed."""
    while True:
        file = path.open("ab", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except BlockingIOError as problem:
            file.close()
            raise InvalidRequest(
                f"another run is writing {path}; wait until it has ended, or name another file with --out"
            ) from problem
        except FileNotFoundError:
            pass
        except BaseException:
            file.close()
            raise
        file.close()  # it was compacted or removed between the two calls: what has the name now is another file


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
        parse_json(last, max_depth=_DEPTH)
    except ValueError:
        with path.open("r+b") as file:
            file.truncate(len(whole) + len(newline))
        return
    with path.open("ab") as file:
        file.write(b"\n")
