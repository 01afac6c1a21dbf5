"""A question asked again and again about a stream: one at a time, at its own pace or slower, until it is pointless."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from vision_bench.client.live_answer import LiveAnswer
from vision_bench.client.live_rules import is_fatal
from vision_bench.errors import InvalidRequest, UpstreamError


@dataclass(frozen=True, slots=True)
class Seen:
    """What one question brought: an answer, or a failure that may pass.

    Attributes:
        tick: when it was due, in ``every_seconds`` since the first question.
        skipped: questions left out before it, because the one before took too long.
    """

    tick: int
    skipped: int
    answer: LiveAnswer | None
    failure: UpstreamError | None


async def watch(ask: Callable[[], Awaitable[LiveAnswer]], *, every_seconds: float) -> AsyncGenerator[Seen, None]:
    """What ``ask`` brings, every ``every_seconds``.

    Questions never overlap: one that is due while another is out is left out, not made up for. The time that the reader
    takes for what it gets counts like the question's own. Whoever leaves early wraps this in ``contextlib.aclosing``.

    Raises:
        InvalidRequest: an interval that is none.
        HttpFailure: a failure that would not pass: the question is wrong or forbidden, or its stream is gone.
    """
    if not every_seconds > 0:
        raise InvalidRequest(f"every {every_seconds:g} s is no interval; give one above 0")
    loop = asyncio.get_running_loop()
    began, tick, skipped = loop.time(), 0, 0
    while True:
        answer: LiveAnswer | None = None
        failure: UpstreamError | None = None
        try:
            answer = await ask()
        except UpstreamError as problem:
            if is_fatal(problem):
                raise
            failure = problem
        yield Seen(tick, skipped, answer, failure)
        # A hair is forgiven: what ends in time to the microsecond is not late.
        due = max(tick + 1, -int(-((loop.time() - began) / every_seconds - 1e-6) // 1))
        skipped = due - tick - 1
        tick = due
        await asyncio.sleep(max(0.0, began + tick * every_seconds - loop.time()))
