"""client.live_watch on a clock that jumps."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from tests import jumping_clock

from vision_bench.client.live_watch import Seen, watch
from vision_bench.errors import BrokenStream, HttpFailure, InvalidRequest


def run(*plan: Any, every_seconds: float = 1.0, reader_seconds: float = 0.0) -> tuple[list[float], list[Seen]]:
    """When the questions of ``plan`` went out, and what came: each a duration in seconds, or a failure."""
    asked: list[float] = []
    seen: list[Seen] = []
    left = list(plan)

    async def ask() -> Any:
        asked.append(asyncio.get_running_loop().time())
        step = left.pop(0)
        if isinstance(step, Exception):
            raise step
        await asyncio.sleep(step)
        return "answer"

    async def main() -> None:
        async with contextlib.aclosing(watch(ask, every_seconds=every_seconds)) as all_:
            async for one in all_:
                seen.append(one)
                await asyncio.sleep(reader_seconds)
                if not left:
                    break

    jumping_clock.run(main())
    return asked, seen


def test_quick_questions_keep_their_pace() -> None:
    """One a second, none skipped, however long each took below a second."""
    asked, seen = run(0.2, 0.9, 0.0, 1.0, 0.1)
    assert asked == [0, 1, 2, 3, 4]
    assert [(one.tick, one.skipped) for one in seen] == [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)]


def test_a_slow_question_skips_those_that_were_due_meanwhile() -> None:
    """2.5 s: the ones due at 1 and 2 are left out, the next is asked at 3, on the grid."""
    asked, seen = run(2.5, 0.1, 3.0, 0.1)
    assert asked == [0, 3, 4, 7]
    assert [(one.tick, one.skipped) for one in seen] == [(0, 0), (3, 2), (4, 0), (7, 2)]


def test_the_reader_counts_like_the_question() -> None:
    """Who takes 1.5 s for each answer gets every second one."""
    assert run(0.1, 0.1, 0.1, reader_seconds=1.5)[0] == [0, 2, 4]


def test_what_may_pass_goes_on() -> None:
    """Failures of the server and of the network are seen, and the next question is asked."""
    problems = [HttpFailure(500, "x"), BrokenStream("cut"), HttpFailure(429, "x"), HttpFailure(409, "x")]
    asked, seen = run(*problems, 0.1)
    assert asked == [0, 1, 2, 3, 4]
    assert [one.failure for one in seen] == [*problems, None]
    assert [one.answer for one in seen] == [None] * 4 + ["answer"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_what_will_not_pass_ends_it(status: int) -> None:
    """A question that is wrong, forbidden, or about what is gone is asked once."""
    with pytest.raises(HttpFailure):
        run(HttpFailure(status, "x"), 0.1)


@pytest.mark.parametrize("every_seconds", [0.0, -1.0, float("nan")])
def test_no_interval(every_seconds: float) -> None:
    """Nothing is asked without a pace."""
    with pytest.raises(InvalidRequest, match="no interval"):
        run(0.1, every_seconds=every_seconds)
