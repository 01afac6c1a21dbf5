"""JPEG frames pushed over a connection of messages: what each message means, without the connection.

A binary message is one picture. A text message before it is a JSON object about it, and every field may be left out:
``timestamp_ms`` on the source's own media clock, and ``clock`` with its readings ``captured_ns`` and ``sent_ns``.
Two kinds of text are about clocks: ``{"type": "clock", "asked_ns": …}`` is answered with this server's readings, so
that the source can reckon the offset, and ``{"type": "offset", "clock": …, "offset_ns": …, "bound_ns": …}`` tells it.
"""

from __future__ import annotations

from typing import Any

from vision_bench.live.clocks import Offset, Stamp
from vision_bench.live.inlet import Inlet
from vision_bench.live.jpeg import jpeg_size
from vision_bench.live.media_clock import MediaClock
from vision_bench.live.ring import Frame
from vision_bench.wire.shapes import parse_json

Json = dict[str, Any]

TEXT_LIMIT_LETTERS = 2_048
_MOST = 2**62
_TICKS = 90_000
"""A second of the media clock: timestamps in ms become RTP's, which ``MediaClock`` follows."""


class BadMessage(ValueError):
    """A text message that means nothing here; the connection is to be closed with this reason."""


class PushReader:
    """The messages of one connection, in their order."""

    def __init__(self, inlet: Inlet) -> None:
        self._inlet = inlet
        self._media = MediaClock(rate=_TICKS)
        self._about: Json = {}

    def text(self, text: str) -> Json | None:
        """What a text message is answered with, if anything.

        Raises:
            BadMessage: no such message.
        """
        received_ns = self._inlet.clock()
        message = _object(text)
        match message.get("type", "frame"):
            case "frame":
                self._about = message
                return None
            case "clock":
                asked_ns = _whole(message, "asked_ns")
                answer = {"type": "clock", "clock": self._inlet.clock_id, "asked_ns": asked_ns}
                return {**answer, "received_ns": received_ns, "replied_ns": self._inlet.clock()}
            case "offset":
                self._learn_offset(message)
                return None
        raise BadMessage("type must be frame, clock or offset")

    def picture(self, data: bytes) -> Json:
        """Take a picture; the answer says under which index it is held, or why it is not."""
        now_ns = self._inlet.clock()
        about, self._about = self._about, {}
        stored = self._store(data, about, now_ns)
        if isinstance(stored, Frame):
            return {"type": "stored", "frame_index": stored.index, "timestamp_ms": stored.stream_ms}
        return {"type": "dropped", "reason": stored}

    def _store(self, data: bytes, about: Json, now_ns: int) -> Frame | str:
        inlet = self._inlet
        if len(data) > inlet.limits.frame_bytes:
            return inlet.drop("too_many_bytes")
        size = jpeg_size(data)
        if size is None:
            return inlet.drop("not_a_jpeg")
        width, height = size
        reason = inlet.why_not(width=width, height=height, now_ns=now_ns)
        if reason is not None:
            return inlet.drop(reason)
        stamps = _stamps(about) | {"arrived": inlet.stamp(now_ns)}
        return inlet.store(data, width=width, height=height, at_ns=self._at_ns(about, now_ns), stamps=stamps)

    def _at_ns(self, about: Json, now_ns: int) -> int:
        timestamp_ms: Any = about.get("timestamp_ms")
        if not _is_number(timestamp_ms):
            return now_ns
        return self._media.at_ns(round(timestamp_ms * _TICKS / 1_000) % 2**32, arrived_ns=now_ns)

    def _learn_offset(self, message: Json) -> None:
        clock, bound_ns = message.get("clock"), _whole(message, "bound_ns")
        if not _is_name(clock) or bound_ns < 0:
            raise BadMessage("an offset needs the name of its clock and a bound of 0 or more")
        offset = Offset(str(clock), self._inlet.clock_id, _whole(message, "offset_ns"), bound_ns)
        self._inlet.stream.offset = offset


def _object(text: str) -> Json:
    if len(text) > TEXT_LIMIT_LETTERS:
        raise BadMessage(f"a text message has at most {TEXT_LIMIT_LETTERS} letters")
    try:
        message = parse_json(text)
    except ValueError:
        raise BadMessage("a text message must be JSON") from None
    if not isinstance(message, dict):
        raise BadMessage("a text message must be an object")
    return message


def _stamps(about: Json) -> dict[str, Stamp]:
    clock = about.get("clock")
    if not _is_name(clock):
        return {}
    readings: dict[str, Any] = {"captured": about.get("captured_ns"), "sent": about.get("sent_ns")}
    return {name: Stamp(str(clock), ns) for name, ns in readings.items() if _is_whole(ns)}


def _whole(message: Json, name: str) -> int:
    value: Any = message.get(name)
    if not _is_whole(value):
        raise BadMessage(f"{name} must be a whole number of nanoseconds")
    return int(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 64 and value.isprintable() and not value.startswith("server")
