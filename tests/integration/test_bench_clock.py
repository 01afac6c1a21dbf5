"""The run's clock on the real machine."""

from __future__ import annotations

import asyncio
import time

import pytest

from vision_bench.bench.clock import MonotonicClock
from vision_bench.stats import percentile


async def test_the_clock_wakes_at_the_instant_asked_for() -> None:
    """Never before it, and most often within half a millisecond: a loop's own timers have a grain of a whole one."""
    late_ms: list[float] = []
    with MonotonicClock() as clock:
        for number in range(40):
            when_ns = clock.now_ns() + 1_300_000 + number * 37_000
            await clock.sleep_until(when_ns)
            late_ms.append((time.monotonic_ns() - when_ns) / 1e6)
    assert min(late_ms) >= 0
    # A quarter of the waits is enough to tell a timer of nanoseconds from one of milliseconds on a busy machine.
    assert percentile(late_ms, 0.25) < 0.5


async def test_an_instant_that_is_past_costs_one_turn_of_the_loop() -> None:
    """Others get their turn, so that a driver that is late does not stop its own requests."""
    turns: list[str] = []
    with MonotonicClock() as clock:
        task = asyncio.create_task(_note(turns))
        await clock.sleep_until(clock.now_ns() - 1)
        assert turns == ["other"]
        await task


async def test_a_cancelled_sleep_leaves_the_clock_usable() -> None:
    """The timer that was set may still fire; the next sleep is not cut short by it."""
    with MonotonicClock() as clock:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.005):
                await clock.sleep_until(clock.now_ns() + 15_000_000)
        when_ns = clock.now_ns() + 40_000_000
        await clock.sleep_until(when_ns)
        assert clock.now_ns() >= when_ns


async def _note(turns: list[str]) -> None:
    turns.append("other")
