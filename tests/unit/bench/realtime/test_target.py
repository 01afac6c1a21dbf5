"""What the client does when a connection ends under its hands. The socket is a list of messages."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosedError

from vision_bench.bench.realtime import target
from vision_bench.bench.realtime.plan import SessionPlan
from vision_bench.bench.realtime.record import SessionRecord
from vision_bench.bench.realtime.socket import read_address
from vision_bench.wire.realtime.events import ChunkMetadata, ErrorEvent, VideoStart

EVENT = '{"type":"session.interaction","interaction":{"event_id":"a","event":{"prompt":"rain"}}}'


class Ended:
    """A connection whose other side said its last words and left: they can be read, and nothing can be sent."""

    close_code = 1006

    def __init__(self, messages: list[Any], *, sends: int) -> None:
        self._messages = messages
        self._sends = sends

    async def send(self, _: str) -> None:
        if not self._sends:
            raise ConnectionClosedError(None, None)
        self._sends -= 1

    async def receive(self) -> tuple[str | bytes, int]:
        if not self._messages:
            raise ConnectionClosedError(None, None)
        message = self._messages.pop(0)
        return message if isinstance(message, bytes) else json.dumps(message.to_message()), 1


async def hold(monkeypatch: pytest.MonkeyPatch, socket: Ended) -> SessionRecord:
    @asynccontextmanager
    async def opened(*_: object, **__: object) -> AsyncIterator[Ended]:
        yield socket

    monkeypatch.setattr(target, "open_socket", opened)
    record = SessionRecord(step=1, index=0, ordinal=0, due_ns=0)
    plan = SessionPlan(start="{}", num_chunks=3, interactions={0: [EVENT]})
    await target.RealtimeTarget(read_address("ws://127.0.0.1:1"), plan).send(record)
    return record


async def test_last_words_behind_a_chunk_are_read_though_its_event_cannot_be_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server broke and said so; the event after its last chunk meets a dead connection. The error counts."""
    chunk = ChunkMetadata("r", "media", 9, 4, 0, 0)
    words = [VideoStart("r", {}), chunk, b"data", ErrorEvent("out of memory")]
    record = await hold(monkeypatch, Ended(words, sends=1))
    assert (record.outcome, record.errors) == ("session_error", ["out of memory"])


async def test_a_refusal_that_came_while_the_start_was_written_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has heard enough answers and leaves before the last byte: its words are the outcome."""
    record = await hold(monkeypatch, Ended([ErrorEvent("session.start message too large")], sends=0))
    assert (record.outcome, record.start_sent_ns) == ("start_refused", None)
