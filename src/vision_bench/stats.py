"""The one percentile of the project, and summaries that say how many values they stand on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def percentile(values: Sequence[float], fraction: float) -> float:
    """Value below which ``fraction`` of ``values`` lies, by linear interpolation (type 7).

    Args:
        values: (N,) numbers in any order, N >= 1.
        fraction: within [0, 1]; 0.95 is the p95.

    Raises:
        ValueError: no values, or a fraction outside [0, 1].
    """
    if not values:
        raise ValueError("percentile() needs at least one value.")
    if not 0.0 <= fraction <= 1.0:
        raise ValueError("percentile fraction must be within [0, 1].")
    ordered = sorted(values)
    position = fraction * (len(ordered) - 1)
    lower = int(position)
    upper = min(lower + 1, len(ordered) - 1)
    weight = position - lower
    if weight == 0.0 or ordered[lower] == ordered[upper]:
        return ordered[lower]  # also keeps inf - inf out of the arithmetic
    return ordered[lower] * (1.0 - weight) + ordered[upper] * weight


@dataclass(frozen=True, slots=True)
class Summary:
    """Count, centre and tails of one set of numbers. Everything but the count is None when there are none."""

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    minimum: float | None
    maximum: float | None


def summarise(values: Sequence[float]) -> Summary:
    """Describe ``values``; an empty set gives a count of 0 and no numbers, never zeros."""
    if not values:
        return Summary(0, None, None, None, None, None, None)
    return Summary(
        count=len(values),
        mean=math.fsum(values) / len(values),
        p50=percentile(values, 0.5),
        p90=percentile(values, 0.9),
        p99=percentile(values, 0.99),
        minimum=min(values),
        maximum=max(values),
    )
