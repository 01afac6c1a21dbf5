"""What the client saw of one session of generated video; and the single facts that it is made of.

A record is filled in fact by fact (``reader.py``). The facts are also written down as they happen (``journal.py``), so
that a session whose record a killed run took can be put together again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from vision_bench.bench.realtime.pixels import PixelProof
from vision_bench.bench.realtime.records import ChunkArrival, FrameTime, SentEvent, SessionObservation, SessionTimes
from vision_bench.bench.record import Record

FactName = Literal["connecting", "open", "started", "sending", "text", "unreadable", "binary", "left", "closed", "late"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that happened in a session, monotonic ns.

    Attributes:
        name: ``connecting``, ``open``: the connection; ``started``: ``session.start`` was written; ``sending``: a
            control message goes out; ``text``, ``unreadable``, ``binary``: a frame came; ``left``: we dropped the
            connection, as was planned; ``closed``: it is gone; ``late``: what we waited for did not come in time.
        text: the message sent or read (without the request that ``video.start`` echoes), why one cannot be read, or
            which deadline passed.
        size: bytes of a binary frame; close code of a closed connection.
    """

    ns: int
    name: FactName
    text: str | None = None
    size: int | None = None


@dataclass(slots=True, kw_only=True)
class SessionRecord(Record):
    """A session and its end. What did not happen is None.

    Attributes:
        request_id: as ``video.start`` gave it.
        num_chunks: chunks asked for.
        is_warmup: sent before the first step.
        connect_ns, connected_ns: connecting began, and was done; start_sent_ns: ``session.start`` was written, the
            zero of everything that a viewer waits for; video_start_ns: it was answered; first_byte_ns: the first
            chunk was announced; stop_sent_ns: ``session.stop`` went out; left_ns: we dropped the connection; done_ns:
            ``session.done`` came; ended_ns: the session was over.
        chunks: binary frames in order of arrival, the trailer among them.
        events: interactions sent, with their answers.
        pings, pongs: how many went out and came back.
        done_chunks, was_stopped: what ``session.done`` said.
        close_code: of the connection's end; 1006 stands for none.
        errors: messages of ``error`` events, in order.
        oddities: what was not as it should be and ended nothing, counted by name.
        frames: pictures in order of decoding, and proof: what a reference server wrote into them; kept in a file of
            their own.
    """

    request_id: str | None = None
    num_chunks: int = 0
    is_warmup: bool = False
    connect_ns: int | None = None
    connected_ns: int | None = None
    start_sent_ns: int | None = None
    video_start_ns: int | None = None
    first_byte_ns: int | None = None
    stop_sent_ns: int | None = None
    left_ns: int | None = None
    done_ns: int | None = None
    ended_ns: int | None = None
    chunks: list[ChunkArrival] = field(default_factory=list)
    events: list[SentEvent] = field(default_factory=list)
    pings: int = 0
    pongs: int = 0
    done_chunks: int | None = None
    was_stopped: bool | None = None
    close_code: int | None = None
    errors: list[str] = field(default_factory=list)
    oddities: dict[str, int] = field(default_factory=dict)
    frames: list[FrameTime] | None = None
    proof: PixelProof | None = None

    def note(self, oddity: str, count: int = 1) -> None:
        """Count something that was odd and ended nothing."""
        self.oddities[oddity] = self.oddities.get(oddity, 0) + count


def observation(record: SessionRecord) -> SessionObservation:
    """The record as the arithmetic of this folder takes it. A session that never started began when it was due."""
    times = SessionTimes(
        start_sent_ns=record.due_ns if record.start_sent_ns is None else record.start_sent_ns,
        connect_ns=record.connect_ns,
        connected_ns=record.connected_ns,
        video_start_ns=record.video_start_ns,
        first_byte_ns=record.first_byte_ns,
        stop_sent_ns=record.stop_sent_ns,
        done_ns=record.done_ns,
        ended_ns=record.stop_ns if record.ended_ns is None else record.ended_ns,
    )
    return SessionObservation(
        times=times,
        request_id=record.request_id,
        arrivals=tuple(record.chunks),
        events=tuple(record.events),
        frames=None if record.frames is None else tuple(record.frames),
        outcome=record.outcome or "running",
        is_warmup=record.is_warmup,
    )
