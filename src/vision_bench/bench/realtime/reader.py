"""One session's facts, one after the other, into its record, and what its end was. No sockets, no clock.

The protocol says of an ``error`` neither whether it was the last word nor whose answer it is. So: replies come in the
order of the control messages, and an error while an interaction waits for its reply is that reply; an error that
nothing follows was the end of the session; one that ``session.done`` follows was a stall that the server found.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import replace

from vision_bench.bench.realtime.record import Fact, SessionRecord
from vision_bench.bench.realtime.records import ChunkArrival, SentEvent, chunk_records
from vision_bench.bench.record import OK
from vision_bench.wire.realtime.events import (
    ChunkMetadata,
    ErrorEvent,
    InteractionQueued,
    Pong,
    SessionDone,
    VideoStart,
    read_event,
)

TOO_BIG = 1009
NO_CLOSE_FRAME = 1006
MAX_MESSAGE = 2000
"""Characters that are kept of an error."""
ATTRIBUTED = ("event_id_conflict", "interaction_failed")
"""Codes of errors that name their event and end nothing."""

START_REFUSED = "start_refused"
"""Outcome: an error before ``video.start``."""
LATE_ERROR = "late_error"
"""Outcome: an error after ``video.start`` and before the first chunk: the request was refused late."""
SESSION_ERROR = "session_error"
"""Outcome: an error in mid-stream."""
SERVER_STALL = "server_stall"
"""Outcome: the server found itself stalled: an error, then done."""
STOPPED_BY_SERVER = "stopped_by_server"
"""Outcome: done, stopped, and nobody had asked."""
SHORT_ROLLOUT = "short_rollout"
"""Outcome: done, as if nothing were missing, before the last chunk."""
CONNECTION_LOST = "connection_lost"
"""Outcome: the connection ended without a last word."""
MESSAGE_TOO_BIG = "message_too_big"
"""Outcome: one side's limit of a message was passed (close code 1009)."""


class SessionReader:
    """Fills in a record, fact by fact. The record's ``num_chunks`` must be set."""

    def __init__(self, record: SessionRecord) -> None:
        self._record = record
        self._waiting: deque[str | None] = deque()  # control messages without a reply: an event's id, None for a ping
        self._announced: ChunkMetadata | None = None
        self._last_error: str | None = None  # while nothing has come after it
        self._refused_by_it: str | None = None  # the event that it was taken for the answer to
        self._next_transport = 0
        self._next_generation = 0
        self.last_index: int | None = None
        """Place in the rollout of the newest chunk."""
        self.last_media_ns: int | None = None
        self.in_doubt_since_ns: int | None = None
        """The last message was an error that answers nothing: the end, unless something follows."""

    @property
    def is_done(self) -> bool:
        """``session.done`` came."""
        return self._record.done_ns is not None

    def take(self, fact: Fact) -> None:
        """One more fact."""
        record = self._record
        match fact.name:
            case "connecting":
                record.connect_ns = fact.ns
            case "open":
                record.connected_ns = fact.ns
            case "started":
                record.start_sent_ns = fact.ns
            case "sending":
                self._sending(fact)
            case "text":
                self._text(fact)
            case "unreadable":
                record.note("unreadable_message")
                record.detail = record.detail or f"a message of the server cannot be read: {fact.text}"
            case "binary":
                self._binary(fact.size or 0, fact.ns)
            case "left":
                record.left_ns = record.ended_ns = fact.ns
                self.end()
            case "closed":
                record.close_code = fact.size
                self._closed(fact)
            case "late":
                record.ended_ns = fact.ns
                self.end(late=fact.text)

    def _sending(self, fact: Fact) -> None:
        message = json.loads(fact.text or "{}")
        match message.get("type"):
            case "session.ping":
                self._record.pings += 1
                self._waiting.append(None)
            case "session.stop":
                self._record.stop_sent_ns = fact.ns
            case "session.interaction":
                event_id = message["interaction"]["event_id"]
                self._record.events.append(SentEvent(event_id, fact.ns))
                self._waiting.append(event_id)

    def _text(self, fact: Fact) -> None:
        event = read_event(fact.text or "")
        record = self._record
        if not isinstance(event, ErrorEvent | SessionDone):
            self._goes_on()
        match event:
            case VideoStart():
                if record.video_start_ns is not None:
                    record.note("repeated_video_start")
                    return
                record.video_start_ns, record.request_id = fact.ns, event.request_id
            case ChunkMetadata():
                self._metadata(event, fact.ns)
            case InteractionQueued():
                self._queued(event.event_id, fact.ns)
            case Pong():
                record.pongs += 1
                self._answer(None)
            case SessionDone():
                record.done_ns = record.ended_ns = fact.ns
                record.done_chunks, record.was_stopped = event.chunks, event.stopped
            case ErrorEvent():
                self._error(event, fact.ns)
            case _:
                record.note("unknown_message")

    def _metadata(self, metadata: ChunkMetadata, now_ns: int) -> None:
        record = self._record
        if self._announced is not None:
            record.note("announced_and_not_sent")
        if record.video_start_ns is None:
            record.note("media_before_video_start")
        if record.first_byte_ns is None:
            record.first_byte_ns = now_ns
        self._announced = metadata

    def _binary(self, size: int, now_ns: int) -> None:
        record, metadata = self._record, self._announced
        self._goes_on()
        self._announced = None
        self.last_media_ns = now_ns
        if metadata is None:
            record.note("sent_and_not_announced")
            return
        arrival = ChunkArrival(
            transport_index=metadata.transport_chunk_index,
            generation_index=metadata.generation_chunk_index,
            is_trailer=metadata.kind == "trailer",
            arrival_ns=now_ns,
            announced_bytes=metadata.byte_length,
            received_bytes=size,
            announced_frames=metadata.num_frames,
            started_event_ids=metadata.started_event_ids,
            active_event_ids=metadata.active_event_ids,
            completed_event_ids=metadata.completed_event_ids,
        )
        record.chunks.append(arrival)
        self._look_at(arrival)

    def _look_at(self, arrival: ChunkArrival) -> None:
        record = self._record
        if arrival.received_bytes != arrival.announced_bytes:
            record.note("other_length_than_announced")
        if arrival.transport_index != self._next_transport:
            record.note("transport_gap")
        self._next_transport = arrival.transport_index + 1
        if arrival.is_trailer:
            return
        index = arrival.generation_index
        if index is None:
            record.note("null_index")
            index = self._next_generation
        elif index > self._next_generation:
            # A chunk without bytes is not announced: its pictures come with a later one.
            record.note("chunks_not_announced", index - self._next_generation)
        elif index < self._next_generation:
            record.note("repeated_index")
        self.last_index = index
        self._next_generation = index + 1

    def _queued(self, event_id: str, now_ns: int) -> None:
        if not self._stamp(event_id, acked_ns=now_ns):
            self._record.note("acknowledged_and_not_sent")
        self._answer(event_id)

    def _error(self, error: ErrorEvent, now_ns: int) -> None:
        record = self._record
        message = error.message[:MAX_MESSAGE]
        record.errors.append(message)
        if error.code in ATTRIBUTED and error.event_id is not None:
            self._stamp(error.event_id, refused_ns=now_ns)
            self._answer(error.event_id)
            return
        self._last_error, self._refused_by_it = message, None
        if self._waiting and self._waiting[0] is not None:
            self._refused_by_it = self._waiting.popleft()
            self._stamp(self._refused_by_it or "", refused_ns=now_ns)
        else:
            self.in_doubt_since_ns = now_ns

    def _answer(self, what: str | None) -> None:
        """Replies are ordered: whatever was sent before ``what`` gets none any more."""
        if what in self._waiting:
            while self._waiting.popleft() != what:
                self._record.note("control_without_reply")

    def _stamp(self, event_id: str, *, acked_ns: int | None = None, refused_ns: int | None = None) -> bool:
        events = self._record.events
        for place, event in enumerate(events):
            if event.event_id == event_id and event.acked_ns is None:
                events[place] = replace(event, acked_ns=acked_ns, refused_ns=refused_ns)
                return True
        return False

    def _goes_on(self) -> None:
        """Something came after an error: it was not the end."""
        if self.in_doubt_since_ns is not None:
            self._record.note("error_that_answers_nothing")
        self._last_error = self._refused_by_it = self.in_doubt_since_ns = None

    # --- the end

    def _closed(self, fact: Fact) -> None:
        record = self._record
        if record.close_code == NO_CLOSE_FRAME:
            record.note("no_close_frame")
        if record.ended_ns is None:
            record.ended_ns = fact.ns
        self.end()

    def end(self, *, late: str | None = None) -> None:
        """Say how it ended. A second end changes nothing.

        Args:
            late: the deadline that passed, as an outcome.
        """
        record = self._record
        if record.outcome is not None:
            return
        self._look_at_the_end()
        if record.left_ns is not None:
            record.end(OK)
        elif record.done_ns is not None:
            self._end_when_done()
        elif self._last_error is not None:
            self._end_by_error(self._last_error)
        elif late is not None:
            record.end(late, self._so_far())
        elif record.close_code == TOO_BIG:
            record.end(MESSAGE_TOO_BIG, f"close code 1009, {self._so_far()}")
        else:
            code = "no close frame" if record.close_code in (None, NO_CLOSE_FRAME) else f"code {record.close_code}"
            record.end(CONNECTION_LOST, f"{code}, {self._so_far()}")

    def _end_when_done(self) -> None:
        record = self._record
        received = 0 if self.last_index is None else self.last_index + 1
        if record.stop_sent_ns is not None:
            record.end(OK)
        elif record.was_stopped and self._last_error is not None:
            record.end(SERVER_STALL, self._last_error)
        elif record.was_stopped:
            record.end(STOPPED_BY_SERVER, self._so_far())
        elif received < record.num_chunks:
            record.end(SHORT_ROLLOUT, f"{received} of {record.num_chunks} chunks, then done")
        else:
            record.end(OK)

    def _end_by_error(self, message: str) -> None:
        record = self._record
        if self._refused_by_it is not None:
            # It was no reply to this event after all.
            self._record.events[:] = [
                replace(event, refused_ns=None) if event.event_id == self._refused_by_it else event
                for event in record.events
            ]
        if record.video_start_ns is None:
            record.end(START_REFUSED, message)
        elif self.last_index is None:
            record.end(LATE_ERROR, message)
        else:
            hanging = [event.event_id for event in record.events if self._hangs(event)]
            after = f"; acknowledged before and never started: {', '.join(hanging)}" if hanging else ""
            record.end(SESSION_ERROR, f"{message} ({self._so_far()}{after})")

    def _hangs(self, event: SentEvent) -> bool:
        return event.acked_ns is not None and not any(
            event.event_id in chunk.started_event_ids for chunk in self._record.chunks
        )

    def _look_at_the_end(self) -> None:
        record = self._record
        if self._announced is not None:
            record.note("announced_and_not_sent")
        if record.done_ns is None:
            return
        if record.done_chunks != len(record.chunks):
            record.note("done_counts_other_chunks")
        if not record.was_stopped and not any(chunk.is_trailer for chunk in record.chunks):
            record.note("no_trailer")

    def _so_far(self) -> str:
        seen = len(chunk_records(self._record.chunks, start_sent_ns=0))
        return f"after {seen} of {self._record.num_chunks} chunks"
