"""The body on its way in, over bare ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from vision_bench.gateway.admission import Pace
from vision_bench.gateway.exchange import ClientLeft, Refusal
from vision_bench.gateway.upload import Upload, declared_bytes


def receiver(messages: Sequence[dict[str, Any]]) -> Any:
    """An ASGI ``receive`` that gives these messages and then nothing more."""
    left = list(messages)

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return receive


def part(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


LEFT = {"type": "http.disconnect"}


async def read(messages: Sequence[dict[str, Any]]) -> list[bytes]:
    """The pieces of a body of at most six bytes."""
    return [piece async for piece in Upload(receiver(messages), Pace(), limit_bytes=6).pieces()]


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
    assert declared_bytes({"headers": []}, limit_bytes=6) == 6, "unknown: as long as it may be"


async def test_an_undeclared_length_is_refused_at_the_limit() -> None:
    """A chunked body is read no further than the part that breaks the limit."""
    messages = [part(b"abc"), part(b"defg"), part(b"never read")]
    receive = receiver(messages)
    with pytest.raises(Refusal, match="more than 6 bytes"):
        _ = [piece async for piece in Upload(receive, Pace(), limit_bytes=6).pieces()]
    assert (await receive())["body"] == b"never read"


async def test_leaving_in_the_upload() -> None:
    """A disconnect in the middle of the body is ClientLeft, not a short body."""
    with pytest.raises(ClientLeft):
        await read([part(b"abc"), LEFT])
