"""The body on its way in, over bare ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.asgi_messages import LEFT, part, receiver
from tests.jumping_clock import run

from vision_bench.gateway.exchange import ClientLeft, Refusal
from vision_bench.gateway.room import Pace
from vision_bench.gateway.upload import Upload, declared_bytes


def upload(receive: Any, *, idle_seconds: float = 30.0, timeout_seconds: float = 600.0) -> Upload:
    """An upload of at most six bytes."""
    return Upload(receive, Pace(), limit_bytes=6, idle_seconds=idle_seconds, timeout_seconds=timeout_seconds)


async def read(messages: Sequence[dict[str, Any]]) -> list[bytes]:
    return await upload(receiver(messages)).read()


@pytest.mark.parametrize(
    "messages",
    [
        [part(b"abcdef", more=False)],
        [part(b"abc"), part(b"def", more=False)],
        [part(b""), part(b"abcdef"), part(b"", more=False)],
    ],
)
async def test_a_body_is_read_to_its_end(messages: list[dict[str, Any]]) -> None:
    """However it was cut, up to exactly the limit."""
    assert b"".join(await read(messages)) == b"abcdef"


def test_a_declared_length_over_the_limit_is_refused_unread() -> None:
    """413 before the first byte is asked for."""

    with pytest.raises(Refusal, match="7 bytes, the limit is 6") as caught:
        declared_bytes({"headers": [(b"content-length", b"7")]}, limit_bytes=6)
    assert caught.value.status == 413
    assert declared_bytes({"headers": [(b"content-length", b"5")]}, limit_bytes=6) == 5
    assert declared_bytes({"headers": [(b"content-length", b"0" * 5000 + b"5")]}, limit_bytes=6) == 5
    assert declared_bytes({"headers": []}, limit_bytes=6) == 6, "unknown: as long as it may be"
    both = [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")]
    assert declared_bytes({"headers": both}, limit_bytes=6) == 6, "its chunks come, whatever it says"


async def test_an_undeclared_length_is_refused_at_the_limit() -> None:
    """A chunked body is read no further than the part that breaks the limit."""
    messages = [part(b"abc"), part(b"defg"), part(b"never read")]
    receive = receiver(messages)
    with pytest.raises(Refusal, match="more than 6 bytes"):
        await upload(receive).read()
    assert (await receive())["body"] == b"never read"


def slow_receiver(pauses_seconds: Sequence[float]) -> Any:
    """One byte after each pause, and never the end."""
    left = list(pauses_seconds)

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(left.pop(0) if left else 10_000.0)
        return part(b"a")

    return receive


@pytest.mark.parametrize(
    ("pauses_seconds", "after_seconds", "came_bytes", "setting"),
    [
        ([], 30, 0, "GATEWAY_UPLOAD_IDLE_SECONDS"),
        ([0, 0], 30, 2, "GATEWAY_UPLOAD_IDLE_SECONDS"),
        ([29, 29, 29], 29 * 3 + 30, 3, "GATEWAY_UPLOAD_IDLE_SECONDS"),
        ([25, 25, 25, 25, 25], 100, 3, "GATEWAY_UPLOAD_TIMEOUT_SECONDS"),
        ([29, 29, 29, 20], 100, 3, "GATEWAY_UPLOAD_TIMEOUT_SECONDS"),
    ],
)
def test_an_upload_that_pauses_or_drips_is_408(
    pauses_seconds: list[float], after_seconds: float, came_bytes: int, setting: str
) -> None:
    """At 30 s without a byte, or 100 s in all (600 in the cases of a pause), to the tick; the clock jumps."""
    timeout_seconds = 100.0 if "TIMEOUT" in setting else 600.0

    async def main() -> None:
        loop = asyncio.get_running_loop()
        slow = upload(slow_receiver(pauses_seconds), timeout_seconds=timeout_seconds)
        with pytest.raises(Refusal, match=setting) as caught:
            await slow.read()
        assert (caught.value.status, caught.value.type) == (408, "upload_timeout")
        assert loop.time() == pytest.approx(after_seconds, abs=0.2)
        assert slow.size_bytes == came_bytes
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling(), "the task is as it was"

    run(main())


def test_what_the_gateway_itself_takes_is_no_pause() -> None:
    """The reader is busy for a minute between two pieces, longer than the caller might pause: nothing is refused."""

    async def main() -> None:
        messages = receiver([part(b"a"), part(b"b"), part(b"c", more=False)])
        pieces = []
        with upload(messages) as slowly_read:
            while piece := await slowly_read.next_piece():
                pieces.append(piece)
                await asyncio.sleep(60)
        assert pieces == [b"a", b"b", b"c"]

    run(main())


def test_a_server_that_stops_in_the_same_moment_wins() -> None:
    """Cancelled by somebody else together with the timer: the cancellation comes through, no 408."""

    async def main() -> None:
        async def consume() -> None:
            await upload(slow_receiver([])).read()

        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(30.0, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())


async def test_leaving_in_the_upload() -> None:
    """A disconnect in the middle of the body is ClientLeft, not a short body."""
    with pytest.raises(ClientLeft):
        await read([part(b"abc"), LEFT])
