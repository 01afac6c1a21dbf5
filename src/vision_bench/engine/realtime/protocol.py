"""One session of ``WS /v1/realtime/video`` as a state machine: what happened in, what to do out. No sockets, no clock.

::

    WAITING --start--> RUNNING --last chunk--> OVER        trailer, done
       |                 |  ^ ping, interaction, refused control message
       |                 |--stop--> STOPPING --generation ended--> OVER        done (stopped), no trailer
       |                 |--nothing for 60 s: error--> STOPPING
       |                 `--generation failed--> OVER      error alone
       `--refused, or nothing for 10 s--> OVER             error alone

Faithful also where the original is odd: no close frame follows the last message; an error does not say whether it was
the last; a binary frame from the client makes the session deaf (no pong, no stop, no stall guard), and it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from vision_bench.wire.realtime.control import ControlRefused, Interaction, Ping, Stop, read_control
from vision_bench.wire.realtime.events import (
    ChunkMetadata,
    ErrorEvent,
    InteractionQueued,
    Pong,
    SessionDone,
    VideoStart,
)
from vision_bench.wire.realtime.start import Start, StartRefused, read_start

NORMAL_CLOSE = 1000
NS_PER_SECOND = 1_000_000_000
MAX_SECONDS = 86_400


class Phase(Enum):
    """Where a session stands."""

    WAITING = "waiting for session.start"
    RUNNING = "running"
    STOPPING = "stopping"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a session may be silent.

    Raises:
        ValueError: less than nothing, or more than a day.
    """

    start_seconds: float = 10.0
    """From being accepted to ``session.start``."""
    stall_seconds: float = 60.0
    """Without output of the engine and without a ping."""

    def __post_init__(self) -> None:
        for name, value in (("start", self.start_seconds), ("stall", self.stall_seconds)):
            if not 0 <= value <= MAX_SECONDS:
                raise ValueError(f"the {name} timeout is {value} s; it must be 0 or more, and at most {MAX_SECONDS}.")


@dataclass(frozen=True, slots=True)
class Session:
    """All that the protocol remembers of one connection."""

    model: str
    request_id: str
    quiet_since_ns: int
    """When it was accepted; later, when the engine last gave something or the client last pinged."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    phase: Phase = Phase.WAITING
    start: Start | None = None
    is_listening: bool = True
    is_registered: bool = False
    """The engine knows the request: interactions can be handed on."""
    event_ids: frozenset[str] = frozenset()
    frames_sent: int = 0
    """Binary frames, the trailer among them."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send this event as a text frame."""

    event: VideoStart | InteractionQueued | Pong | SessionDone | ErrorEvent


@dataclass(frozen=True, slots=True)
class SendMedia:
    """Send both frames with nothing in between."""

    metadata: ChunkMetadata
    data: bytes


@dataclass(frozen=True, slots=True)
class Generate:
    """Put the request into the engine's queue."""

    start: Start


@dataclass(frozen=True, slots=True)
class Forward:
    """Hand an interaction to the engine, which may still end the session over it."""

    event_id: str
    interaction: Interaction


@dataclass(frozen=True, slots=True)
class Abort:
    """Tell the engine that nobody wants the rest; say when it has ended."""


@dataclass(frozen=True, slots=True)
class Close:
    """The connection ends. Without a code no close frame is sent: the client sees 1006."""

    code: int | None = None


Action = Send | SendMedia | Generate | Forward | Abort | Close


class Step(NamedTuple):
    """The session as it is now, and what is to be done, in this order."""

    session: Session
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk out of the engine, encoded."""

    index: int
    num_frames: int
    data: bytes
    """Empty when the encoder has held everything back: such a chunk is not announced."""
    started_event_ids: Sequence[str] = ()
    active_event_ids: Sequence[str] = ()
    completed_event_ids: Sequence[str] = ()


def refuse_model(reason: str) -> tuple[Action, ...]:
    """What a server does with a connection when its model cannot stream: one error, and a normal close."""
    return Send(ErrorEvent(reason)), Close(NORMAL_CLOSE)


def on_text(session: Session, message: str, *, now_ns: int, fresh_id: str) -> Step:
    """A text frame came.

    Args:
        session: the session so far.
        message: the frame.
        now_ns: monotonic.
        fresh_id: 32 hex digits for an interaction that brings no id of its own.
    """
    if session.phase is Phase.WAITING:
        return _on_start(session, message, now_ns)
    if session.phase is Phase.RUNNING and session.is_listening:
        return _on_control(session, message, now_ns, fresh_id)
    return Step(session)


def on_binary(session: Session) -> Step:
    """A binary frame came. As a first message it is an error; later it is the last one that is read."""
    if session.phase is Phase.WAITING:
        # The original looks for the text of a frame that has none, and reports the missing key.
        return _fail(session, "'text'")
    return Step(replace(session, is_listening=False))


def on_client_gone(session: Session) -> Step:
    """The reading side closed. A running session does not care until it next sends a chunk."""
    if session.phase is Phase.WAITING:
        return Step(replace(session, phase=Phase.OVER))
    return Step(replace(session, is_listening=False))


def on_send_failed(session: Session) -> Step:
    """A frame could not be sent: now it is noticed that nobody is there."""
    was_running = session.phase in {Phase.RUNNING, Phase.STOPPING}
    return Step(replace(session, phase=Phase.OVER), (Abort(),) if was_running else ())


def next_deadline_ns(session: Session) -> int | None:
    """When :func:`on_clock` has something to do, monotonic; None while nothing runs out."""
    if session.phase is Phase.WAITING:
        return session.quiet_since_ns + round(session.deadlines.start_seconds * NS_PER_SECOND)
    if session.phase is Phase.RUNNING and session.is_listening:
        return session.quiet_since_ns + round(session.deadlines.stall_seconds * NS_PER_SECOND)
    return None


def on_clock(session: Session, *, now_ns: int) -> Step:
    """Time has passed; before the deadline nothing happens. The original looks once a second."""
    deadline_ns = next_deadline_ns(session)
    if deadline_ns is None or now_ns <= deadline_ns:
        return Step(session)
    if session.phase is Phase.WAITING:
        return _fail(session, "Timeout waiting for session.start")
    error = Send(ErrorEvent("Stall timeout: no generation progress"))
    return Step(replace(session, phase=Phase.STOPPING), (error, Abort()))


def on_registered(session: Session) -> Step:
    """The engine has taken the request in; before, interactions fail."""
    return Step(replace(session, is_registered=True))


def on_chunk(session: Session, chunk: Chunk, *, now_ns: int) -> Step:
    """The engine gave a chunk. Once the client has stopped, it is the moment at which the session ends."""
    if session.phase is Phase.STOPPING:
        return _done(session, stopped=True)
    start = session.start
    if session.phase is not Phase.RUNNING or start is None:
        return Step(session)
    session = replace(session, quiet_since_ns=now_ns)
    if not chunk.data:
        return Step(session)
    metadata = ChunkMetadata(
        request_id=session.request_id,
        kind="media",
        num_frames=chunk.num_frames,
        byte_length=len(chunk.data),
        # A rollout of one chunk is no stream to the engine, which then numbers nothing.
        generation_chunk_index=None if start.num_chunks == 1 else chunk.index,
        transport_chunk_index=session.frames_sent,
        started_event_ids=tuple(chunk.started_event_ids),
        active_event_ids=tuple(chunk.active_event_ids),
        completed_event_ids=tuple(chunk.completed_event_ids),
    )
    return Step(replace(session, frames_sent=session.frames_sent + 1), (SendMedia(metadata, chunk.data),))


def on_generation_ended(session: Session, trailer: bytes = b"") -> Step:
    """The engine is through, or has acknowledged an abort. Only a rollout that ran to its end has a trailer."""
    if session.phase is Phase.STOPPING:
        return _done(session, stopped=True)
    if session.phase is not Phase.RUNNING:
        return Step(session)
    if not trailer:
        return _done(session, stopped=False)
    metadata = ChunkMetadata(session.request_id, "trailer", 0, len(trailer), None, session.frames_sent)
    ended, actions = _done(replace(session, frames_sent=session.frames_sent + 1), stopped=False)
    return Step(ended, (SendMedia(metadata, trailer), *actions))


def on_generation_failed(session: Session, message: str) -> Step:
    """The engine refused the request late, or broke. After a stop nobody is told."""
    if session.phase is Phase.STOPPING:
        return _done(session, stopped=True)
    return _fail(session, message) if session.phase is Phase.RUNNING else Step(session)


def _on_start(session: Session, message: str, now_ns: int) -> Step:
    try:
        start = read_start(message, model=session.model)
    except StartRefused as refused:
        return _fail(session, str(refused))
    running = replace(session, phase=Phase.RUNNING, start=start, quiet_since_ns=now_ns)
    return Step(running, (Send(VideoStart(session.request_id, start.config)), Generate(start)))


def _on_control(session: Session, message: str, now_ns: int, fresh_id: str) -> Step:
    try:
        control = read_control(message)
    except ControlRefused as refused:
        return Step(session, (Send(ErrorEvent(str(refused))),))
    match control:
        case Ping():
            return Step(replace(session, quiet_since_ns=now_ns), (Send(Pong()),))
        case Stop():
            return Step(replace(session, phase=Phase.STOPPING), (Abort(),))
        case Interaction():
            return _on_interaction(session, control, control.event_id or fresh_id)


def _on_interaction(session: Session, interaction: Interaction, event_id: str) -> Step:
    if event_id in session.event_ids:
        return Step(session, (_interaction_error(session, "event_id_conflict", "event_id_conflict", event_id),))
    if not session.is_registered:
        # The id is not remembered: it may be used again.
        error = _interaction_error(session, "Failed to apply interaction", "interaction_failed", event_id)
        return Step(session, (error,))
    queued = Send(InteractionQueued(session.request_id, event_id))
    remembered = replace(session, event_ids=session.event_ids | {event_id})
    # Acknowledged first: what the engine makes of it comes later, be it the session's end.
    return Step(remembered, (queued, Forward(event_id, interaction)))


def _interaction_error(session: Session, message: str, code: str, event_id: str) -> Send:
    return Send(ErrorEvent(message, code, session.request_id, event_id))


def _fail(session: Session, message: str) -> Step:
    return Step(replace(session, phase=Phase.OVER), (Send(ErrorEvent(message)), Close()))


def _done(session: Session, *, stopped: bool) -> Step:
    done = Send(SessionDone(session.request_id, session.frames_sent, stopped))
    return Step(replace(session, phase=Phase.OVER), (done, Close()))
