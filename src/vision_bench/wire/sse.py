r"""Server-Sent Events: bytes in, whole events out, however they were chunked.

Follows the WHATWG event-stream grammar: UTF-8 whatever the header says, lines end at ``\r\n``, ``\n`` or ``\r`` and
at nothing else (U+2028 and U+0085 stand inside answers), comments and unknown fields are skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MEDIA_TYPE = "text/event-stream"
DONE = "[DONE]"
"""The data of the event with which an OpenAI-shaped stream ends."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
    r"""One event: its ``data`` lines joined by ``\n``, its name, and the last id the stream has set."""

    data: str
    event: str = "message"
    id: str | None = None


class EventParser:
    """Feed it network chunks; it gives back the events that each one completes."""

    def __init__(self) -> None:
        self._line: list[bytes] = []  # pieces of the line that has no end yet
        self._skip_newline = False  # the last byte was \r: a \n that comes next belongs to it
        self._at_start = True
        self._data: list[str] = []
        self._event = ""
        self._id: str | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Events that ``data`` completes, in order."""
        if not data:
            return []
        if self._is_between and _is_one_event(data):  # as nearly every piece of an answer is: a tenth of the work
            self._at_start = self._skip_newline = False
            return [Event(data[6:-2].decode(errors="replace"), id=self._id)]
        if self._skip_newline and data.startswith(b"\n"):
            data = data[1:]
        self._skip_newline = data.endswith(b"\r")
        first, *others = _LINE_END.split(data)
        self._line.append(first)
        events: list[Event] = []
        for piece in others:
            event = self._take_line(b"".join(self._line))
            if event is not None:
                events.append(event)
            self._line = [piece]
        return events

    @property
    def _is_between(self) -> bool:
        """Nothing of a next event has come."""
        return not self._data and not self._event and not any(self._line)

    def close(self) -> list[Event]:
        """The event that the stream ended in, if it had data but no blank line behind it.

        The grammar drops such an event. It is handed over because proxies strip final newlines; whoever reads it must
        expect half a payload.
        """
        last = self._take_line(b"".join(self._line)) if self._line else None
        self._line = []
        return [event for event in (last, self._dispatch()) if event is not None]

    def _take_line(self, line: bytes) -> Event | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            return self._dispatch()
        name, _, value = line.decode(errors="replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None  # a comment has an empty name; `retry` and unknown names mean nothing here

    def _dispatch(self) -> Event | None:
        lines, name = self._data, self._event
        self._data, self._event = [], ""
        return Event("\n".join(lines), name or "message", self._id) if lines else None


def _is_one_event(data: bytes) -> bool:
    """Whether ``data`` is one event of one plain data line and nothing else."""
    return data.startswith(b"data: ") and data.endswith(b"\n\n") and data.count(b"\n") == 2 and b"\r" not in data


def encode_event(data: str, *, event: str | None = None) -> bytes:
    r"""``data`` as the bytes of one event, ending in a blank line. A line end inside becomes a second ``data`` line."""
    head = f"event: {event}\n" if event else ""
    lines = re.split(r"\r\n|\n|\r", data)
    return (head + "".join(f"data: {line}\n" for line in lines) + "\n").encode()
