"""Whether chunks get slower as a session goes on.

A straight line through the intervals, by the median of the slopes between all pairs (Theil and Sen): one stall in the
middle of a rollout moves it as little as one chunk of thirty can, where least squares would call it drift.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

from vision_bench.bench.realtime.metrics import ChunkRecord
from vision_bench.bench.realtime.workload import DEFAULT_WARMUP_CHUNKS
from vision_bench.stats import percentile

MIN_INTERVALS = 10
"""Below this Sen's interval, which is a normal approximation, says little."""
MAX_POINTS = 1000
"""All pairs of more would be millions: of a longer session evenly spaced chunks are taken."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Milliseconds that the interval grows from one chunk to the next."""

    intervals: int
    ms_per_chunk: float | None
    """None below ten intervals, as are the bounds."""
    low_ms_per_chunk: float | None
    high_ms_per_chunk: float | None
    """Bounds of the interval at ``confidence``; 0 within them means that no drift was shown."""
    confidence: float


def interval_drift(
    records: Sequence[ChunkRecord], *, warmup_chunks: int = DEFAULT_WARMUP_CHUNKS, confidence: float = 0.95
) -> Drift:
    """Slope of the interval over the chunk index, after the warm-up and without the terminal chunk.

    Raises:
        ValueError: a confidence that is not between 0 and 1.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is {confidence}; it must lie between 0 and 1.")
    ordered = sorted(records, key=lambda record: record.index)
    points = [
        (record.index, record.inter_arrival_s * 1000.0)
        for record in ordered[:-1]
        if record.index >= warmup_chunks and record.index > 0
    ]
    count = len(points)
    if count < MIN_INTERVALS:
        return Drift(count, None, None, None, confidence)
    points = points[:: math.ceil(len(points) / MAX_POINTS)]
    slopes = sorted((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if x2 != x1)
    low, high = _sen_bounds(slopes, [y for _, y in points], confidence)
    return Drift(count, percentile(slopes, 0.5), low, high, confidence)


def _sen_bounds(slopes: Sequence[float], values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Sen (1968): the slopes so far from the middle as Kendall's S, with its ties, may be from 0 by chance."""
    count = len(values)
    ties = sum(same * (same - 1) * (2 * same + 5) for same in Counter(values).values())
    variance = (count * (count - 1) * (2 * count + 5) - ties) / 18
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(variance)
    lower = math.floor((len(slopes) - reach) / 2) - 1
    upper = math.ceil((len(slopes) + reach) / 2)
    return slopes[max(lower, 0)], slopes[min(upper, len(slopes) - 1)]
