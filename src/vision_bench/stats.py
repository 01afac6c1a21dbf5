"""The one percentile of the project, and summaries and intervals that say how many values they stand on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple


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


CONFIDENCE = 0.95
"""Of every interval here unless said otherwise."""


def samples_needed(fraction: float, *, confidence: float = CONFIDENCE) -> int:
    """How many values a percentile needs before both ends of its interval are values that were seen.

    The largest of n values lies above the percentile ``fraction`` with probability ``1 - fraction ** n``; with fewer
    values than this the tail beyond the percentile may not have been seen at all. 368 for the p99, 6 for the median.
    """
    rarer = min(fraction, 1.0 - fraction)
    if not 0.0 < rarer < 1.0:
        raise ValueError(f"samples_needed() of {fraction}: give a fraction between 0 and 1.")
    return math.ceil(math.log((1.0 - confidence) / 2.0) / math.log1p(-rarer))


class Interval(NamedTuple):
    """Both ends of an interval."""

    low: float
    high: float


def percentile_interval(
    ordered: Sequence[float], fraction: float, *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Two of the values between which the true percentile lies, whatever the distribution.

    Args:
        ordered: (N,) independent values, ascending; infinities are fine.

    Returns:
        The order statistics that a binomial count leaves with at least ``confidence``; None where N is too small.
    """
    count = len(ordered)
    if count < samples_needed(fraction, confidence=confidence):
        return None
    rare = (1.0 - confidence) / 2.0
    low = _binomial_quantile(count, fraction, rare)
    high = _binomial_quantile(count, fraction, 1.0 - rare)
    return Interval(ordered[max(low, 1) - 1], ordered[min(high, count - 1)])


def _binomial_quantile(count: int, share: float, probability: float) -> int:
    """Smallest k with P(Binomial(count, share) <= k) >= probability.

    Summed from ten deviations under the mean, where what is left out is smaller than the arithmetic's own error.
    """
    mean, deviation = count * share, math.sqrt(count * share * (1.0 - share))
    k = max(0, int(mean - 10.0 * deviation - 10.0))
    log_start = math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
    term = math.exp(log_start + k * math.log(share) + (count - k) * math.log1p(-share))
    total = term
    while total < probability and k < count:
        term *= (count - k) / (k + 1) * share / (1.0 - share)
        k += 1
        total += term
    return k


def wilson_interval(successes: float, count: float, *, confidence: float = CONFIDENCE) -> Interval | None:
    """Interval of a share, Wilson's score; within [0, 1] and of some width even at 0 or all. None without a trial."""
    if count == 0:
        return None
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    share = successes / count
    scale = 1.0 + z * z / count
    centre = (share + z * z / (2.0 * count)) / scale
    reach = z / scale * math.sqrt(share * (1.0 - share) / count + z * z / (4.0 * count * count))
    return Interval(max(0.0, centre - reach), min(1.0, centre + reach))
