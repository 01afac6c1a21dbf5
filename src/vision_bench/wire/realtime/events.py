"""What a server sends as text: made here, and read here by a client that believes nothing.

Binary frames have no header; each follows the ``video.chunk_metadata`` that describes it, with nothing in between.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from vision_bench.wire.realtime.start import FORMAT
from vision_bench.wire.shapes import Json, object_in, parse_json, text_in

MAX_COUNT = 2**53
"""What a count may be: anybody's JSON holds it exactly."""
MAX_CHUNK_FRAMES = 1_000_000
"""Pictures that a chunk may announce: a reader gives each a place in memory, and believes in no more."""


@dataclass(frozen=True, slots=True)
class VideoStart:
    """The request was accepted as far as its form goes. Nothing is generated yet, and it may still be refused."""

    request_id: str
    config: Json
    format: str = FORMAT

    def to_message(self) -> Json:
        """The message that says this."""
        return {"type": "video.start", "request_id": self.request_id, "format": self.format, "config": self.config}


@dataclass(frozen=True, slots=True)
class ChunkMetadata:
    """About the very next binary frame."""

    request_id: str | None
    kind: Literal["media", "trailer"]
    num_frames: int
    byte_length: int
    generation_chunk_index: int | None
    """Place in the rollout; null for a trailer, and for the only chunk of a rollout of one."""
    transport_chunk_index: int
    started_event_ids: tuple[str, ...] = ()
    active_event_ids: tuple[str, ...] = ()
    completed_event_ids: tuple[str, ...] = ()

    def to_message(self) -> Json:
        """The message that says this."""
        fields = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {"type": "video.chunk_metadata", **fields}


@dataclass(frozen=True, slots=True)
class InteractionQueued:
    """An event lies on the engine's queue. That is all it means."""

    request_id: str | None
    event_id: str

    def to_message(self) -> Json:
        """The message that says this."""
        return {"type": "session.interaction.queued", "request_id": self.request_id, "event_id": self.event_id}


@dataclass(frozen=True, slots=True)
class Pong:
    """The answer to a ping."""

    def to_message(self) -> Json:
        """The message that says this."""
        return {"type": "session.pong"}


@dataclass(frozen=True, slots=True)
class SessionDone:
    """The end. No close frame follows."""

    request_id: str | None
    chunks: int
    """Binary frames sent, the trailer among them."""
    stopped: bool

    def to_message(self) -> Json:
        """The message that says this."""
        return {
            "type": "session.done",
            "request_id": self.request_id,
            "chunks": self.chunks,
            "stopped": self.stopped,
        }


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """A control message that was refused, or the session's death: the message does not say which."""

    message: str
    code: str | None = None
    request_id: str | None = None
    event_id: str | None = None

    def to_message(self) -> Json:
        """The message that says this, without what is not known."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return {"type": "error", **known}


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """A type that this protocol did not have when this was written."""

    type: str
    message: Json


Event = VideoStart | ChunkMetadata | InteractionQueued | Pong | SessionDone | ErrorEvent | UnknownEvent


def read_event(message: str) -> Event:
    """What a server's text frame says. Fields that a client can do without may be missing.

    Raises:
        ValueError: not JSON, not an object with a type, or a field that is needed and is of another kind.
    """
    given = parse_json(message)
    if not isinstance(given, dict):
        raise ValueError(f"a server event is {type(given).__name__}, not an object")
    request_id = text_in(given, "request_id")
    match text_in(given, "type"):
        case None:
            raise ValueError("a server event has no 'type'")
        case "video.start":
            return VideoStart(
                _text(given, "request_id"), object_in(given, "config"), text_in(given, "format") or FORMAT
            )
        case "video.chunk_metadata":
            return _read_metadata(given)
        case "session.interaction.queued":
            return InteractionQueued(request_id, _text(given, "event_id"))
        case "session.pong":
            return Pong()
        case "session.done":
            return SessionDone(request_id, _count(given, "chunks"), given.get("stopped") is True)
        case "error":
            code = given.get("code")
            return ErrorEvent(
                text_in(given, "message") or "",
                None if code is None else str(code),
                request_id,
                text_in(given, "event_id"),
            )
        case other:
            return UnknownEvent(other, given)


def _read_metadata(given: Json) -> ChunkMetadata:
    kind = _text(given, "kind")
    if kind not in ("media", "trailer"):
        raise ValueError(f"'kind' is {kind!r}, not media or trailer")
    index = given.get("generation_chunk_index")
    return ChunkMetadata(
        request_id=text_in(given, "request_id"),
        kind="media" if kind == "media" else "trailer",
        num_frames=_count(given, "num_frames", most=MAX_CHUNK_FRAMES),
        byte_length=_count(given, "byte_length"),
        generation_chunk_index=None if index is None else _count(given, "generation_chunk_index"),
        transport_chunk_index=_count(given, "transport_chunk_index"),
        started_event_ids=_ids(given, "started_event_ids"),
        active_event_ids=_ids(given, "active_event_ids"),
        completed_event_ids=_ids(given, "completed_event_ids"),
    )


def _text(given: Json, name: str) -> str:
    value = text_in(given, name)
    if value is None:
        raise ValueError(f"'{name}' is missing")
    return value


def _count(given: Json, name: str, *, most: int = MAX_COUNT) -> int:
    value: Any = given.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"'{name}' is {value!r}, not a count")
    return value


def _ids(given: Json, name: str) -> tuple[str, ...]:
    value: Any = given.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"'{name}' is not an array of ids")
    return tuple(value)
