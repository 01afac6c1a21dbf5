"""engine.realtime.settings: what cannot be served is refused at the start."""

from __future__ import annotations

import math
from typing import Any

import pytest

from vision_bench.engine.realtime.late import Deployment
from vision_bench.engine.realtime.protocol import Deadlines
from vision_bench.engine.realtime.settings import RealtimeSettings
from vision_bench.engine.realtime.timing import TimingSettings


@pytest.mark.parametrize("size", [(832, 480), (480, 832), (128, 128), (256, 192)])
def test_sizes_that_are_served(size: tuple[int, int]) -> None:
    """The original's, and small ones for tests."""
    assert RealtimeSettings(deployment=Deployment(*size)).deployment == Deployment(*size)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"deployment": Deployment(100, 480)}, "100x480 cannot be served"),
        ({"deployment": Deployment(848, 480)}, "848x480 cannot be served"),
        ({"deployment": Deployment(0, 0)}, "0x0 cannot be served"),
        ({"deployment": Deployment(64, 48)}, "64x48 cannot be served"),
        ({"capabilities": frozenset({"sound"})}, "'sound' does not exist"),
        ({"pipeline_chunks": 1}, "pipeline_chunks is 1"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    """The message holds the value."""
    with pytest.raises(ValueError, match=words):
        RealtimeSettings(**options)


@pytest.mark.parametrize("value", [-1.0, 1e300, math.inf, math.nan])
def test_times_that_no_clock_counts_are_refused_at_the_start(value: float) -> None:
    """A session would break on them later, each one."""
    for make in (Deadlines, lambda seconds: Deadlines(10.0, seconds)):
        with pytest.raises(ValueError, match="timeout is"):
            make(value)
    for name in ("ttfc_ms", "chunk_ms"):
        with pytest.raises(ValueError, match=f"{name} is"):
            TimingSettings(**{name: value})
