"""One exchange over bare ASGI: leaving callers, refusals."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.asgi_messages import LEFT, part, receiver

from vision_bench.errors import AcquireTimeout, BrokenStream, ConnectFailed, UpstreamTimeout
from vision_bench.gateway.exchange import (
    SCOPE_KEY,
    ClientLeft,
    Exchange,
    Refusal,
    refusal_of,
    refuse,
    unless_client_leaves,
)
from vision_bench.gateway.timings import Timings


async def test_work_is_cancelled_when_the_caller_leaves() -> None:
    """And has ended, its cleaning up included, when ClientLeft is raised."""
    steps: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    with pytest.raises(ClientLeft):
        await unless_client_leaves(receiver([part(b""), LEFT]), work())
    assert steps == ["cleaned up"]


async def test_the_error_of_the_work_comes_through() -> None:
    """Work that fails raises its own error, and the watcher is gone."""

    async def work() -> None:
        raise ConnectFailed("refused")

    before = len(asyncio.all_tasks())
    with pytest.raises(ConnectFailed):
        await unless_client_leaves(receiver([]), work())
    assert len(asyncio.all_tasks()) == before


async def test_cancelled_from_outside_it_ends_its_work_first() -> None:
    """A server that stops cancels the request: the work is cancelled too, and waited for."""
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(unless_client_leaves(receiver([]), work()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


@pytest.mark.parametrize(
    ("problem", "status", "type"),
    [
        (ConnectFailed("x"), 502, "connect_failed"),
        (BrokenStream("x"), 502, "truncated"),
        (AcquireTimeout("x"), 503, "acquire_timeout"),
        (UpstreamTimeout("x"), 504, "upstream_timeout"),
    ],
)
def test_failed_calls_have_their_statuses(problem: Any, status: int, type: str) -> None:
    """Every failure is the OpenAI error shape, its class in ``type`` and its status in ``code``."""
    refusal = refusal_of(problem)
    assert refusal.status == status
    assert json.loads(refusal.body) == {"error": {"message": "x", "type": type, "param": None, "code": status}}
    assert ("Retry-After" in refusal.headers) == (status == 503)


async def test_a_refused_upload_is_answered_before_it_is_thrown_away() -> None:
    """The refusal is out before the rest of the body is read; the connection is closed after it."""
    events: list[Any] = []
    messages = [part(b"x"), part(b"y"), part(b"z", more=False)]

    async def receive() -> dict[str, Any]:
        events.append("read")
        return messages.pop(0)

    async def send(message: Any) -> None:
        events.append(message)

    scope = {"type": "http", "headers": [], SCOPE_KEY: Exchange("id")}
    await refuse(scope, receive, send, Refusal(413, "big", type="too_large"), body_unread=True)
    start, first, *reads, last = events
    assert (start["status"], (b"connection", b"close") in start["headers"]) == (413, True)
    assert json.loads(first["body"])["error"]["message"] == "big"
    assert reads == ["read"] * 3
    assert last == {"type": "http.response.body", "body": b""}
    assert scope[SCOPE_KEY].outcome == "too_large"


def test_a_batch_is_logged_by_its_longest_item() -> None:
    """Times of items are not summed: they overlap. An item without a time changes nothing."""
    exchange = Exchange("id")
    for timings in (Timings(1.0, 5.0), Timings(4.0, None), Timings(2.0, 3.0)):
        exchange.call_ended(timings)
    assert (exchange.timings.queue_ms, exchange.timings.upstream_ms) == (4.0, 5.0)
