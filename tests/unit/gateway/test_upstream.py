"""What is held back of an answer before the first byte goes on."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.gateway import upstream
from vision_bench.gateway.upstream import Answer


class Chunks:
    """An answer in these chunks."""

    status = 200

    def __init__(self, content_type: str, *chunks: bytes) -> None:
        self.headers = {"Content-Type": content_type}
        self._left = [*chunks, b""]

    async def read_some(self) -> bytes:
        return self._left.pop(0)


def answer(content_type: str, *chunks: bytes) -> Answer:
    return Answer(Chunks(content_type, *chunks), lambda: 0.0)


async def held(given: Answer) -> tuple[bytes, bool]:
    await given.read_ahead()
    return given.held, given.is_whole


async def rest(given: Answer) -> list[bytes]:
    return [chunk async for chunk in given.chunks()]


async def test_a_plain_answer_is_held_whole() -> None:
    """So that a failure in its middle can still be an error status."""
    assert await held(answer("application/json", b"{", b"}")) == (b"{}", True)
    assert await held(answer("application/json")) == (b"", True)


@pytest.mark.parametrize("content_type", ["text/event-stream", "Text/Event-Stream; charset=utf-8"])
async def test_an_event_stream_is_held_to_its_first_chunk(content_type: str) -> None:
    """Silence after the headers is then a 504; one that ends without a byte is whole."""
    given = answer(content_type, b"a", b"b", b"c")
    assert await held(given) == (b"a", False)
    assert await rest(given) == [b"b", b"c"]
    assert await held(answer(content_type)) == (b"", True)


async def test_a_huge_plain_answer_is_held_to_a_bound(monkeypatch: Any) -> None:
    """Memory for answers is bounded; beyond it the rest follows as it comes."""
    monkeypatch.setattr(upstream, "HOLD_BYTES", 3)
    given = answer("application/json", b"ab", b"cd", b"ef", b"g")
    assert await held(given) == (b"abcd", False)
    assert await rest(given) == [b"ef", b"g"]


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
async def test_the_whole_body_is_what_was_held_and_the_rest(content_type: str, monkeypatch: Any) -> None:
    """However much of it was read ahead."""
    for hold_bytes in (0, 1, 2, 3, 100):
        monkeypatch.setattr(upstream, "HOLD_BYTES", hold_bytes)
        given = answer(content_type, b"a", b"bc", b"d")
        await given.read_ahead()
        assert await given.read() == b"abcd"
