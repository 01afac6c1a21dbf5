"""Waiting for an instant."""

from __future__ import annotations

import time

import pytest

from vision_bench.engine.clock import sleep_until


@pytest.mark.parametrize("is_precise", [True, False])
async def test_past_deadline_returns_at_once(is_precise: bool) -> None:
    """The time it gives is now, not the deadline."""
    before = time.monotonic_ns()
    assert await sleep_until(before - 10**9, is_precise=is_precise) >= before


async def test_precise_wait_never_ends_early() -> None:
    """Twenty deadlines a fraction of a millisecond ahead."""
    for _ in range(20):
        deadline = time.monotonic_ns() + 300_000
        assert await sleep_until(deadline) >= deadline
