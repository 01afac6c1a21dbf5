"""Waiting for an instant, to a fraction of a millisecond, without stopping the event loop."""

from __future__ import annotations

import asyncio
import time

SPIN_NS = 1_500_000
"""The event loop's timers have a grain of 1 ms (epoll), so the last stretch is spent yielding."""


async def sleep_until(deadline_ns: int, *, is_precise: bool = True) -> int:
    """Return at ``deadline_ns`` (``time.monotonic_ns``), or at once when it is past; gives the time on return.

    With ``is_precise`` the last 1.5 ms are spent yielding to other tasks in a loop, which costs that much CPU; without,
    the wait ends up to about 1 ms late.
    """
    remaining_ns = deadline_ns - time.monotonic_ns()
    if not is_precise:
        await asyncio.sleep(max(0.0, remaining_ns / 1e9))
        return time.monotonic_ns()
    if remaining_ns > SPIN_NS:
        await asyncio.sleep((remaining_ns - SPIN_NS) / 1e9)
    while time.monotonic_ns() < deadline_ns:  # noqa: ASYNC110 - an instant, not an event, is waited for
        await asyncio.sleep(0)
    return time.monotonic_ns()
