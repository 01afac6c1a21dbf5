"""One number of a step as its readers get it: percentiles with their counts and intervals, and what is withheld.

Strict JSON: what has no value is None, with the reason under ``withheld``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vision_bench.stats import percentile, percentile_interval, samples_needed

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_DIGITS = 6


def column(values: Sequence[float], *, censored: Sequence[float] = ()) -> dict[str, Any]:
    """Count, mean, p50 to p99, max, the percentiles' 95 % intervals, and why what is missing is missing.

    Args:
        values: one for each request; a failed or unsent one counts as infinity.
        censored: what requests that still ran had reached by then: their values are at least these. A number is
            given only where it does not depend on how much more they would have taken.
    """
    sample = _Sample(
        least=sorted([*values, *censored]),
        most=sorted([*values, *[math.inf] * len(censored)]),
        failed=sum(1 for value in values if math.isinf(value)),
        running=len(censored),
    )
    cells = {"mean": sample.whole(math.fsum, len(sample.least))}
    cells |= {name: sample.percentile(fraction) for name, fraction in PERCENTILES.items()}
    cells["max"] = sample.whole(max, 1)
    intervals = {name: sample.interval(fraction) for name, fraction in PERCENTILES.items()}
    return {
        "count": len(sample.least),
        **{name: None if isinstance(cell, str) else round(cell, _DIGITS) for name, cell in cells.items()},
        "interval": {name: ends for name, ends in intervals.items() if ends is not None},
        "withheld": {name: cell for name, cell in cells.items() if isinstance(cell, str)},
    }


@dataclass(frozen=True, slots=True)
class _Sample:
    """The sorted values if what still ran had ended at once, and if it never ended. A cell is a number or a reason."""

    least: list[float]
    most: list[float]
    failed: int
    running: int

    def whole(self, of: Any, divisor: int) -> float | str:
        """A number that every value takes part in."""
        if not self.least:
            return "0 samples"
        return self._settled(of(self.least) / divisor, of(self.most) / divisor)

    def percentile(self, fraction: float) -> float | str:
        needed = samples_needed(fraction)
        if len(self.least) < needed:
            return f"{len(self.least)} samples, {needed} needed"
        return self._settled(percentile(self.least, fraction), percentile(self.most, fraction))

    def interval(self, fraction: float) -> list[float | None] | None:
        low, high = percentile_interval(self.least, fraction), percentile_interval(self.most, fraction)
        if low is None or high is None:
            return None
        return [round(end, _DIGITS) if math.isfinite(end) else None for end in (low.low, high.high)]

    def _settled(self, least: float, most: float) -> float | str:
        if math.isinf(least):
            return f"{self.failed} of {len(self.least)} failed or were not sent and count as infinite"
        if least == most:
            return least
        return f"at least {least:.1f}: {self.running} of {len(self.least)} still ran when the step ended"
