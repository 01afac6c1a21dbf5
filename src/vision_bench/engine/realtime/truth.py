"""What really happened, kept for whoever judges a client's clock; all times ``time.monotonic_ns``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from vision_bench.wire.ndjson import dump_line
from vision_bench.wire.realtime.truth import ChunkTruth, EventTruth


@dataclass(slots=True)
class SessionTruth:
    """One session's, from its start on."""

    request_id: str
    start_read_ns: int
    chunks: list[ChunkTruth] = field(default_factory=list)
    _read_ns: dict[str, int] = field(default_factory=dict)
    _affected_ns: dict[str, int] = field(default_factory=dict)

    def event_read(self, event_id: str, read_ns: int) -> None:
        """An interaction was taken."""
        self._read_ns[event_id] = read_ns

    def frame_sent(self, *, slot_ns: int, due_ns: int, sent_ns: int, started_event_ids: Sequence[str]) -> None:
        """The next binary frame is out, with the events that began with it."""
        self.chunks.append(ChunkTruth(self.request_id, len(self.chunks), self.start_read_ns, slot_ns, due_ns, sent_ns))
        for event_id in started_event_ids:
            self._affected_ns[event_id] = sent_ns

    def events(self) -> Iterator[EventTruth]:
        """Interactions in the order in which they came."""
        for event_id, read_ns in self._read_ns.items():
            yield EventTruth(self.request_id, event_id, read_ns, self._affected_ns.get(event_id))


class TruthLog:
    """The last ``size`` sessions, oldest first, those that still run among them."""

    def __init__(self, size: int) -> None:
        self._sessions: deque[SessionTruth] = deque(maxlen=size)

    def begin(self, request_id: str, start_read_ns: int) -> SessionTruth:
        """A session has started."""
        session = SessionTruth(request_id, start_read_ns)
        self._sessions.append(session)
        return session

    def clear(self) -> None:
        """Forget all."""
        self._sessions.clear()

    def lines(self) -> Iterator[bytes]:
        """A line a binary frame and a line an event, session by session."""
        for session in self._sessions:
            yield from (dump_line(chunk.to_message()) for chunk in session.chunks)
            yield from (dump_line(event.to_message()) for event in session.events())
