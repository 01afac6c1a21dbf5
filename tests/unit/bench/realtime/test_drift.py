"""bench.realtime.drift: slopes that are there, and those that are not."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from tests.unit.bench.realtime.made import arrivals

from vision_bench.bench.realtime.drift import interval_drift
from vision_bench.bench.realtime.metrics import ChunkRecord
from vision_bench.bench.realtime.records import chunk_records


def session(intervals_ms: list[float]) -> list[ChunkRecord]:
    """Six warm-up chunks of 100 ms, those intervals, and a terminal chunk of 1 ms."""
    times = [0.0]
    for interval in [*[100.0] * 6, *intervals_ms, 1.0]:
        times.append(times[-1] + interval)
    return chunk_records(arrivals(*times[1:]), start_sent_ns=0)


def test_a_straight_line_has_its_slope() -> None:
    """Two milliseconds more a chunk; warm-up and terminal chunk are not on the line and do not matter."""
    drift = interval_drift(session([700 + 2.0 * index for index in range(30)]))
    assert drift.intervals == 30
    assert drift.ms_per_chunk == pytest.approx(2.0)
    assert (drift.low_ms_per_chunk, drift.high_ms_per_chunk) == (pytest.approx(2.0), pytest.approx(2.0))


def test_a_stall_in_the_middle_is_no_drift() -> None:
    """One interval of 20 s late in thirty of 700 ms: least squares would see 20 ms a chunk."""
    intervals = [700.0] * 30
    intervals[25] = 20_000.0
    drift = interval_drift(session(intervals))
    assert drift.ms_per_chunk == pytest.approx(0.0, abs=1e-6)


def test_noise_alone_is_within_its_interval_about_as_often_as_it_says() -> None:
    """Of 200 driftless sessions with noise some 95 % have 0 within the bounds: between 90 and 99 here."""
    draw = random.Random(5)
    covered = 0
    for _ in range(200):
        drift = interval_drift(session([700 + draw.gauss(0, 20) for _ in range(24)]))
        assert drift.low_ms_per_chunk is not None
        assert drift.high_ms_per_chunk is not None
        covered += drift.low_ms_per_chunk <= 0 <= drift.high_ms_per_chunk
    assert 180 <= covered <= 198


def test_a_drift_above_the_noise_is_shown() -> None:
    """Ten ms a chunk under noise of 20: the bounds hold it and not 0."""
    draw = random.Random(6)
    drift = interval_drift(session([700 + 10 * index + draw.gauss(0, 20) for index in range(34)]))
    assert drift.low_ms_per_chunk is not None
    assert drift.high_ms_per_chunk is not None
    assert 0 < drift.low_ms_per_chunk < 10 < drift.high_ms_per_chunk + 1


def test_the_bounds_are_sens() -> None:
    """Ten intervals without ties have 45 slopes, and S varies by 125: bounds 1.96 x 11.18 = 21.9 slopes apart.

    They are the 11th and the 35th; the middle one is the 23rd.
    """
    intervals = [700.0 + 2.0**place for place in range(10)]
    slopes = sorted((2.0**j - 2.0**i) / (j - i) for i, j in combinations(range(10), 2))
    drift = interval_drift(session(intervals))
    assert len(set(slopes)) == 45
    assert drift.ms_per_chunk == pytest.approx(slopes[22])
    assert drift.low_ms_per_chunk == pytest.approx(slopes[10])
    assert drift.high_ms_per_chunk == pytest.approx(slopes[34])


def test_ties_narrow_the_bounds() -> None:
    """Values that repeat can rank in fewer ways: five times 700, then 701, 703, 709 ...: S varies by 108.3.

    The bounds are the 12th and the 34th slope of 45, ten of which are 0.
    """
    intervals = [700.0] * 5 + [700.0 + 3.0**place for place in range(5)]
    slopes = sorted((intervals[j] - intervals[i]) / (j - i) for i, j in combinations(range(10), 2))
    drift = interval_drift(session(intervals))
    assert drift.low_ms_per_chunk == pytest.approx(slopes[11])
    assert drift.high_ms_per_chunk == pytest.approx(slopes[33])


def test_too_few_intervals_say_nothing() -> None:
    """Nine after the warm-up: no slope, but their count."""
    drift = interval_drift(session([700.0] * 9))
    assert (drift.intervals, drift.ms_per_chunk, drift.low_ms_per_chunk, drift.high_ms_per_chunk) == (
        9,
        None,
        None,
        None,
    )
    assert interval_drift([]).intervals == 0


def test_hours_of_chunks_are_thinned_and_still_counted() -> None:
    """5000 intervals: the slope stays what it is, in seconds and not minutes."""
    drift = interval_drift(session([700 + 0.01 * index for index in range(5000)]))
    assert drift.intervals == 5000
    assert drift.ms_per_chunk == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_a_confidence_is_a_share(confidence: float) -> None:
    """Between 0 and 1, without them."""
    with pytest.raises(ValueError, match="confidence"):
        interval_drift([], confidence=confidence)
