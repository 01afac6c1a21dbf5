"""When a body begins to go out before it is whole, on a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.jumping_clock import run

from vision_bench.gateway.ahead import LEAST_BYTES, PATIENCE_SECONDS, SOON_SECONDS, Ahead

PIECE = b"x" * (LEAST_BYTES // 2)


class Noted:
    """A head start that writes down how many pieces it was shown."""

    def __init__(self) -> None:
        self.shown: list[int] = []
        self.called: Sequence[Any] = ()
        self.is_closed = False

    def send_but_last(self, pieces: Sequence[Any]) -> None:
        self.shown.append(len(pieces))

    def call(self, body: Sequence[Any]) -> Any:
        self.called = body

    def close(self) -> None:
        self.is_closed = True


def shown(pieces: int, gap_seconds: float) -> list[int]:
    """What went out of a body in so many pieces, one every ``gap_seconds``."""
    noted = Noted()

    async def upload() -> None:
        ahead, come = Ahead(noted, pieces * len(PIECE)), []
        for _ in range(pieces):
            await asyncio.sleep(gap_seconds)
            come.append(PIECE)
            ahead.came(come, len(come) * len(PIECE))
        ahead.call()
        assert noted.called == come
        ahead.close()
        assert noted.is_closed

    run(upload())
    return noted.shown


def test_a_fast_body_goes_out_from_the_second_piece_on() -> None:
    """The first few bytes say nothing about the pace."""
    assert shown(8, SOON_SECONDS / 100) == [2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(("gap_seconds", "first"), [(SOON_SECONDS / 2, 7), (SOON_SECONDS * 2, 8)])
def test_a_slow_body_waits_here_until_its_end_is_near(gap_seconds: float, first: int) -> None:
    """vLLM does not hold half a request of a caller with a slow line."""
    assert shown(8, gap_seconds)[0] == first


def test_a_body_that_stands_still_after_all_is_broken_off() -> None:
    """What was begun does not lie at vLLM for as long as a caller may be silent; in time it stays."""

    async def upload() -> None:
        noted = Noted()
        ahead = Ahead(noted, 4 * len(PIECE))
        ahead.came([PIECE] * 3, 3 * len(PIECE))
        await asyncio.sleep(PATIENCE_SECONDS * 0.9)
        assert not noted.is_closed
        await asyncio.sleep(PATIENCE_SECONDS * 0.2)
        assert noted.is_closed
        ahead.close()

    run(upload())


def test_a_body_that_is_through_leaves_no_timer() -> None:
    """Nothing is closed behind the back of the next request."""

    async def upload() -> None:
        noted = Noted()
        ahead = Ahead(noted, 4 * len(PIECE))
        ahead.came([PIECE] * 4, 4 * len(PIECE))
        ahead.close()
        noted.is_closed = False
        await asyncio.sleep(PATIENCE_SECONDS * 2)
        assert not noted.is_closed

    run(upload())
