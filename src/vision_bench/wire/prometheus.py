"""A ``/metrics`` page as counters and histograms, and what a server did between two of them.

Label sets of one name are added up: a step of a benchmark asks about the server, not about its engines one by one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})?\s+(\S+)(?:\s+-?\d+)?\s*(?:#.*)?")
_BOUND = re.compile(r'[{,]\s*le="([^"]*)"')


@dataclass(slots=True)
class Histogram:
    """``buckets``: upper bound to the number of values at or below it, the last one infinity."""

    count: float = 0.0
    total: float = 0.0
    buckets: dict[float, float] = field(default_factory=dict)

    @property
    def mean(self) -> float | None:
        """Exact; None without a value."""
        return self.total / self.count if self.count > 0 else None

    def at_most(self, fraction: float) -> float | None:
        """The bound of the bucket that the percentile lies in: it is that or less. None without one that is finite."""
        wanted = fraction * self.count
        bound = next((bound for bound, count in sorted(self.buckets.items()) if count >= wanted), math.inf)
        return bound if self.count > 0 and math.isfinite(bound) else None


@dataclass(frozen=True, slots=True)
class Page:
    """One page. ``counters`` go by their sample's name, ``histograms`` by their family's."""

    counters: dict[str, float]
    histograms: dict[str, Histogram]


def read_page(text: str) -> Page:
    """A page in Prometheus' text form; lines of another kind, gauges and what is no number are passed over."""
    kinds: dict[str, str] = {}
    counters: dict[str, float] = {}
    histograms: dict[str, Histogram] = {}
    for line in text.splitlines():
        words = line.split(" ")
        if line.startswith("# TYPE ") and len(words) == 4:
            kinds[words[2]] = words[3].strip()
        sample = None if line.startswith("#") else _SAMPLE.fullmatch(line)
        value = None if sample is None else _number(sample[3])
        if sample is None or value is None:
            continue
        name, labels = sample[1], sample[2] or ""
        family, _, part = name.rpartition("_")
        if kinds.get(family) == "histogram":
            _add(histograms.setdefault(family, Histogram()), part, labels, value)
        elif "counter" in (kinds.get(name), kinds.get(family)) and part != "created":
            counters[name] = counters.get(name, 0.0) + value
    return Page(counters, histograms)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _add(histogram: Histogram, part: str, labels: str, value: float) -> None:
    if part == "count":
        histogram.count += value
    elif part == "sum":
        histogram.total += value
    elif part == "bucket" and (found := _BOUND.search(labels)):
        try:
            bound = float(found[1])
        except ValueError:
            return
        histogram.buckets[bound] = histogram.buckets.get(bound, 0.0) + value


def difference(before: Page, after: Page) -> Page:
    """What was counted between two pages of one server; names that did not move are left out.

    A count that went down belongs to a server that was started anew: its name is left out too.
    """
    counters = {name: value - before.counters.get(name, 0.0) for name, value in after.counters.items()}
    histograms: dict[str, Histogram] = {}
    for name, late in after.histograms.items():
        early = before.histograms.get(name, Histogram())
        moved = Histogram(
            late.count - early.count,
            late.total - early.total,
            {bound: count - early.buckets.get(bound, 0.0) for bound, count in late.buckets.items()},
        )
        if moved.count > 0 and all(count >= 0 for count in moved.buckets.values()):
            histograms[name] = moved
    return Page({name: moved for name, moved in counters.items() if moved > 0}, histograms)
