"""The form of the log on stderr: lines for people, or an object a line for a log store.

Nothing that a caller sends can break a line or add a field: text entries escape it where they are made, objects are
JSON in ASCII.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Literal, Protocol, TextIO, runtime_checkable

LogFormat = Literal["text", "json"]

UVICORN_LOGGERS = ("uvicorn", "uvicorn.error", "uvicorn.access")


@runtime_checkable
class Entry(Protocol):
    """A message that is made of named values: ``str()`` of it for people, ``fields`` for programs."""

    def fields(self) -> Mapping[str, str | int | float | None]:
        """The values by name; None is "not measured"."""
        ...


class EntryLog:
    """Logs entries at INFO. Building a record costs the library more than all the rest (the stack, the thread, the
    process): here one is copied, made in the thread that logs."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._template = vars(logger.makeRecord(logger.name, logging.INFO, "", 0, "", (), None))

    def add(self, entry: Entry) -> None:
        """One more entry, now."""
        if not self._logger.isEnabledFor(logging.INFO):
            return
        record = logging.LogRecord.__new__(logging.LogRecord)
        now = time.time()
        vars(record).update(self._template, msg=entry, created=now, msecs=now % 1 * 1e3)
        self._logger.handle(record)


class TextFormatter(logging.Formatter):
    """``2026-06-01 12:00:00,000 INFO message`` in local time. Each second is put into words once."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._second = -1
        self._shown = ""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        second = int(record.created)
        if second != self._second:
            self._shown = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
            self._second = second
        return f"{self._shown},{int(record.msecs):03d}"

    def format(self, record: logging.LogRecord) -> str:
        if record.exc_info or record.exc_text or record.stack_info:
            return super().format(record)
        return f"{self.formatTime(record)} {record.levelname} {record.getMessage()}"


class JsonFormatter(logging.Formatter):
    """One object a record: ts (RFC 3339, UTC), level, logger, then the fields of an ``Entry`` or the message.

    ``request_id`` and ``trace_id`` stand there when the record knows them, ``exception`` when there was one.
    """

    def format(self, record: logging.LogRecord) -> str:
        values: dict[str, object] = {
            "ts": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
        }
        if isinstance(record.msg, Entry):
            values |= record.msg.fields()
        else:
            values["message"] = record.getMessage()
            values |= {name: value for name in ("request_id", "trace_id") if (value := getattr(record, name, None))}
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            values["stack"] = record.stack_info
        return json.dumps(values, default=str)


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes a line in one call, and does not flush: stderr does so at the end of a line."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.stream.write(f"{self.format(record)}\n")
        except Exception:  # the library's way: a log that cannot be written stops nothing
            self.handleError(record)


class WithoutQuery(logging.Filter):
    """uvicorn's lines about WebSockets hold the query of their URL: what a caller put there is left out."""

    def filter(self, record: logging.LogRecord) -> bool:
        if "WebSocket %s" in str(record.msg) and isinstance(record.args, tuple):
            record.args = tuple(arg.partition("?")[0] if isinstance(arg, str) else arg for arg in record.args)
        return True


def log_to(stream: TextIO, *, form: LogFormat = "text") -> None:
    """Write our log to ``stream``, unless the program that runs us has set logging up; drop uvicorn's access line.

    Ours says more: the id, the queue, vLLM's share. ``json`` takes uvicorn's other lines, warnings and everybody's
    errors too, so that all of the stream is objects.
    """
    ours, root = logging.getLogger("vision_bench"), logging.getLogger()
    if not ours.handlers and not root.handlers:
        handler = LineHandler(stream)
        ours.setLevel(logging.INFO)
        if form == "json":
            handler.setFormatter(JsonFormatter())
            root.addHandler(handler)
            for name in UVICORN_LOGGERS:
                theirs = logging.getLogger(name)
                theirs.handlers.clear()
                theirs.propagate = True
                theirs.setLevel(logging.INFO)
            logging.captureWarnings(True)
        else:
            handler.setFormatter(TextFormatter())
            ours.addHandler(handler)
    sockets = logging.getLogger("uvicorn.error")
    if not any(isinstance(each, WithoutQuery) for each in sockets.filters):
        sockets.addFilter(WithoutQuery())
    access = logging.getLogger("uvicorn.access")
    access.handlers.clear()
    access.propagate = False
