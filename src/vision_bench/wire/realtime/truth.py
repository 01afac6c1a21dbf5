"""What a reference server says it really did, a JSON object a line: the measure of a client's clock.

Times are the server's ``time.monotonic_ns``. A client on the same machine may compare them with its own; differences of
two of them may be compared anywhere.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from vision_bench.wire.shapes import Json, text_in

_CHUNK_NUMBERS = ("transport_chunk_index", "start_read_ns", "slot_ns", "due_ns", "sent_ns")


@dataclass(frozen=True, slots=True)
class ChunkTruth:
    """One binary frame as it was sent."""

    request_id: str
    transport_chunk_index: int
    start_read_ns: int
    """``session.start`` of its session was read."""
    slot_ns: int
    """Its session began to be generated: what lies between is the wait in the queue."""
    due_ns: int
    """The declared moment."""
    sent_ns: int
    """Both frames had been handed to the socket. After ``due_ns``: the server was late by that."""

    def to_message(self) -> Json:
        """The line that says this."""
        return {"type": "chunk", **asdict(self)}


@dataclass(frozen=True, slots=True)
class EventTruth:
    """One interaction as it was taken."""

    request_id: str
    event_id: str
    read_ns: int
    first_affected_ns: int | None
    """The first chunk that it changed was sent; None when there was none."""

    def to_message(self) -> Json:
        """The line that says this."""
        return {"type": "event", **asdict(self)}


def read_truth(given: Json) -> ChunkTruth | EventTruth:
    """What one line says.

    Raises:
        ValueError: another type, or a field that is missing or of another kind.
    """
    match given.get("type"):
        case "chunk":
            return ChunkTruth(_text(given, "request_id"), *(_whole(given, name) for name in _CHUNK_NUMBERS))
        case "event":
            affected = given.get("first_affected_ns")
            return EventTruth(
                _text(given, "request_id"),
                _text(given, "event_id"),
                _whole(given, "read_ns"),
                None if affected is None else _whole(given, "first_affected_ns"),
            )
        case other:
            raise ValueError(f"'type' is {other!r}, not chunk or event")


def _text(given: Json, name: str) -> str:
    value = text_in(given, name)
    if value is None:
        raise ValueError(f"'{name}' is missing")
    return value


def _whole(given: Json, name: str) -> int:
    value = given.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"'{name}' is {value!r}, not a whole number")
    return value
