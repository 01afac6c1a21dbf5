"""Streams by id: who owns them, how long their lease runs, why they ended, and for how long that is remembered."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from vision_bench.live.clocks import Offset
from vision_bench.live.failures import StreamFailure, shown
from vision_bench.live.ring import Ring, RingState

EndReason = Literal["expired", "deleted", "reaped"]
"""``reaped`` is the server's own doing, such as a source that ended; callers are told ``expired``."""
Source = Literal["rtsp", "hls", "file"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how many. All streams together hold at most ``streams * ring_bytes``."""

    ttl_seconds: int = 300
    tombstone_seconds: int = 300
    """How long an ended stream can still be read, and deleted again."""
    streams_per_owner: int = 8
    tombstones_per_owner: int = 64
    streams: int = 32
    ring_bytes: int = 64 * 2**20
    retention_seconds: int = 600


@dataclass(slots=True)
class Stream:
    """One stream. Times are the server's monotonic clock; ``wall_ms`` shows them as Unix time."""

    id: str
    owner: str
    source: Source | None
    """What the server pulls from; None for a stream that somebody publishes into."""
    ring: Ring
    ttl_seconds: int
    created_ns: int
    created_at_ms: int
    expires_ns: int
    last_pull_ns: int | None = None
    ended_ns: int | None = None
    end_reason: EndReason | None = None
    final: RingState | None = None
    """The ring in numbers when the stream ended; its frames are gone."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Frames that never came to the ring, by reason; those that the ring refused are in its own numbers."""
    offset: Offset | None = None
    """Between the publisher's clock and the server's, as the publisher told it last."""

    @property
    def is_active(self) -> bool:
        return self.ended_ns is None

    def state(self, now_ns: int) -> RingState:
        """The ring in numbers: now, or for good when the stream has ended."""
        return self.final or self.ring.state(now_ns)

    def wall_ms(self, at_ns: int) -> int:
        """Unix milliseconds at ``at_ns``. The wall clock was read once, at creation: it may be set, and turn back."""
        return self.created_at_ms + (at_ns - self.created_ns) // 1_000_000


class Registry:
    """The streams of one server. Another owner's stream is not found, exactly as one that does not exist.

    Leases are checked when a stream is looked up and by ``sweep``, which the server calls now and then so that frames
    nobody asks for do not stay. Everything runs on the event loop's thread.

    Args:
        owner: of each call, whoever the caller is: the name of an API key, never the key itself.
        on_end: called once for each stream that ends, so that its source can be let go.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], int] = time.monotonic_ns,
        wall_clock: Callable[[], int] = time.time_ns,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        on_end: Callable[[Stream], None] = lambda stream: None,
    ) -> None:
        self.limits = limits
        self._clock = clock
        self._wall_clock = wall_clock
        self._new_id = new_id
        self._on_end = on_end
        self._streams: dict[str, Stream] = {}  # in the order of creation, ended ones among them

    def __iter__(self) -> Iterator[Stream]:
        return iter(tuple(self._streams.values()))

    def create(self, owner: str, *, source: Source | None = None) -> Stream:
        """A new, active stream with a whole lease.

        Raises:
            StreamFailure: ``stream_limit`` when the owner has as many as allowed, ``streams_full`` when the server has.
        """
        self.sweep()
        active = [stream.owner for stream in self if stream.is_active]
        if active.count(owner) >= self.limits.streams_per_owner:
            raise StreamFailure(
                "stream_limit", f"{active.count(owner)} streams are active, which is as many as allowed; delete one"
            )
        if len(active) >= self.limits.streams:
            raise StreamFailure(
                "streams_full", f"the server holds {len(active)} streams, which is as many as it can; try again later"
            )
        now_ns = self._clock()
        stream = Stream(
            id=self._new_id(),
            owner=owner,
            source=source,
            ring=Ring(limit_bytes=self.limits.ring_bytes, retention_ns=self.limits.retention_seconds * 10**9),
            ttl_seconds=self.limits.ttl_seconds,
            created_ns=now_ns,
            created_at_ms=self._wall_clock() // 1_000_000,
            expires_ns=now_ns + self.limits.ttl_seconds * 10**9,
        )
        self._streams[stream.id] = stream
        return stream

    def find(self, owner: str, stream_id: str) -> Stream:
        """The stream, active or lately ended.

        Raises:
            StreamFailure: ``stream_not_found``.
        """
        self._look_after(stream_id)
        stream = self._streams.get(stream_id)
        if stream is None or stream.owner != owner:
            raise StreamFailure("stream_not_found", f"Stream not found: {shown(stream_id)}")
        return stream

    def active(self, owner: str, stream_id: str) -> Stream:
        """The stream, if it has not ended: only such a one holds frames.

        Raises:
            StreamFailure: ``stream_not_found``.
        """
        stream = self.find(owner, stream_id)
        if not stream.is_active:
            why = "was deleted" if stream.end_reason == "deleted" else "has ended"
            raise StreamFailure("stream_not_found", f"Stream not found: {shown(stream_id)} {why}; create a new one")
        return stream

    def by_id(self, stream_id: str) -> Stream:
        """An active stream, for who has shown a token of it, whoever its owner is.

        Raises:
            StreamFailure: ``stream_not_found``.
        """
        stream = self._streams.get(stream_id)
        return self.active(stream.owner if stream is not None else "", stream_id)

    def keep_alive(self, owner: str, stream_id: str) -> Stream:
        """Start the lease of an active stream again. A stream that has ended stays ended.

        Raises:
            StreamFailure: ``stream_not_found``.
        """
        stream = self.active(owner, stream_id)
        stream.expires_ns = self._clock() + stream.ttl_seconds * 10**9
        return stream

    def delete(self, owner: str, stream_id: str) -> Stream:
        """End a stream; one that has already ended stays as it is, as long as it is remembered.

        Raises:
            StreamFailure: ``stream_not_found``.
        """
        stream = self.find(owner, stream_id)
        self._end(stream, "deleted", self._clock())
        return stream

    def reap(self, stream_id: str) -> None:
        """End a stream for a reason of the server's own; one that is not active is left alone."""
        stream = self._streams.get(stream_id)
        if stream is not None:
            self._end(stream, "reaped", self._clock())

    def sweep(self) -> None:
        """End what has expired, forget what ended long ago, and let go of frames that are too old."""
        for stream_id in tuple(self._streams):
            self._look_after(stream_id)
        ended = [stream for stream in self if not stream.is_active]
        for owner in {stream.owner for stream in ended}:
            theirs = sorted((s for s in ended if s.owner == owner), key=lambda stream: stream.ended_ns or 0)
            for stream in theirs[: -self.limits.tombstones_per_owner]:
                del self._streams[stream.id]

    def _look_after(self, stream_id: str) -> None:
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        now_ns = self._clock()
        if stream.is_active and now_ns >= stream.expires_ns:
            self._end(stream, "expired", stream.expires_ns)
        if stream.ended_ns is None:
            stream.ring.evict(now_ns)
        elif now_ns >= stream.ended_ns + self.limits.tombstone_seconds * 10**9:
            del self._streams[stream_id]

    def _end(self, stream: Stream, reason: EndReason, at_ns: int) -> None:
        if not stream.is_active:
            return
        stream.final = stream.ring.state(at_ns)
        stream.ring.end()
        stream.ended_ns, stream.end_reason = at_ns, reason
        self._on_end(stream)
