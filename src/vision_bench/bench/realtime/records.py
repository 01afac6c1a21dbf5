"""What was seen of one session, before anything is computed: chunks, events, pictures, moments.

Times are ``time.monotonic_ns`` of one machine. What did not happen is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vision_bench.bench.realtime.metrics import ChunkRecord

NS_PER_MS = 1_000_000
NS_PER_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ChunkArrival:
    """One binary frame and the metadata that announced it."""

    transport_index: int
    """Binary frames of the session are counted from 0, the trailer among them."""
    generation_index: int | None
    """Place in the rollout as the server says it: null for a trailer, and for the only chunk of a rollout of one."""
    is_trailer: bool
    arrival_ns: int
    """When the binary frame was there, whole."""
    announced_bytes: int
    received_bytes: int
    announced_frames: int
    """A trailer announces 0 and carries the last picture."""
    started_event_ids: tuple[str, ...] = ()
    active_event_ids: tuple[str, ...] = ()
    completed_event_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SentEvent:
    """One ``session.interaction`` and the answer to it."""

    event_id: str
    sent_ns: int
    acked_ns: int | None = None
    """``session.interaction.queued`` came: on the engine's queue, no more."""
    refused_ns: int | None = None
    """An ``error`` answered it."""


@dataclass(frozen=True, slots=True)
class FrameTime:
    """One decoded picture, in the order of decoding."""

    pts_seconds: float
    decodable_ns: int
    """Arrival of the binary frame with which the decoder could give this picture."""
    width: int
    height: int
    digest: str | None = None
    """Hash of its pixels; None where nobody looked."""


@dataclass(frozen=True, slots=True)
class SessionTimes:
    """The moments of one session from connecting to its end."""

    start_sent_ns: int
    """``session.start`` was written: the clock's zero for everything a viewer waits for."""
    connect_ns: int | None = None
    """Connecting began."""
    connected_ns: int | None = None
    """The WebSocket was open."""
    video_start_ns: int | None = None
    first_byte_ns: int | None = None
    """First byte of the first media frame, where the transport tells; else its metadata message."""
    stop_sent_ns: int | None = None
    done_ns: int | None = None
    """``session.done`` came."""
    ended_ns: int | None = None
    """The session was over for whatever reason: done, error, closed."""


@dataclass(frozen=True, slots=True)
class SessionObservation:
    """Everything that was seen of one session."""

    times: SessionTimes
    request_id: str | None = None
    """As ``video.start`` gave it; None when that never came."""
    arrivals: tuple[ChunkArrival, ...] = ()
    """Binary frames in order of arrival."""
    events: tuple[SentEvent, ...] = ()
    frames: tuple[FrameTime, ...] | None = None
    """Pictures in order of decoding; None where the stream was not decoded."""
    outcome: str = "ok"
    """``ok`` when it came to the end that was meant for it, else the one word for what went wrong."""
    is_warmup: bool = False

    @property
    def decodable_ns(self) -> list[int]:
        """When each picture could be decoded: as decoded, else as announced."""
        if self.frames is None:
            return decodable_times_ns(self.arrivals)
        return [frame.decodable_ns for frame in self.frames]

    @property
    def records(self) -> list[ChunkRecord]:
        """The published metrics' records."""
        return chunk_records(self.arrivals, start_sent_ns=self.times.start_sent_ns)


def media_chunks(arrivals: Sequence[ChunkArrival]) -> list[ChunkArrival]:
    """The arrivals that are chunks of the rollout, as they came."""
    return [arrival for arrival in arrivals if not arrival.is_trailer]


def chunk_records(arrivals: Sequence[ChunkArrival], *, start_sent_ns: int) -> list[ChunkRecord]:
    """The published metrics' records of a session's arrivals, in order of arrival.

    A chunk without a generation index takes the next one after the chunk before it: a rollout of one chunk has none.
    """
    records: list[ChunkRecord] = []
    before_ns = start_sent_ns
    index = -1
    for arrival in media_chunks(arrivals):
        index = index + 1 if arrival.generation_index is None else arrival.generation_index
        records.append(
            ChunkRecord(
                index=index,
                arrival_s=(arrival.arrival_ns - start_sent_ns) / NS_PER_SECOND,
                inter_arrival_s=(arrival.arrival_ns - before_ns) / NS_PER_SECOND,
                byte_length=arrival.received_bytes,
                num_frames=arrival.announced_frames,
            )
        )
        before_ns = arrival.arrival_ns
    return records


def decodable_times_ns(arrivals: Sequence[ChunkArrival]) -> list[int]:
    """When each picture could first be decoded, from what was announced: (N,) monotonic ns, ascending.

    The muxer writes a picture when the next one comes, so of the pictures announced up to a chunk all but the last are
    there with it. The trailer brings the last one; without a trailer it never comes.
    """
    times: list[int] = []
    announced = 0
    for arrival in arrivals:
        announced += arrival.announced_frames
        there = announced if arrival.is_trailer else announced - 1
        times += [arrival.arrival_ns] * max(0, there - len(times))
    return times


def milliseconds_between(since_ns: int | None, until_ns: int | None) -> float | None:
    """``until - since`` in ms; None when one of the two never happened."""
    if since_ns is None or until_ns is None:
        return None
    return (until_ns - since_ns) / NS_PER_MS
