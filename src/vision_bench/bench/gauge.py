"""How many requests are in flight, and their mean over a step, from the moments at which they came and went."""

from __future__ import annotations


class Gauge:
    """Requests in flight, and their number integrated over a window."""

    def __init__(self) -> None:
        self.count = 0
        self.peak = 0
        self._area = 0
        self._last_ns = 0
        self._window = (0, 0)

    def open(self, start_ns: int, end_ns: int) -> None:
        """A window begins: peak and mean are of what follows."""
        self._window = (start_ns, end_ns)
        self.peak, self._area, self._last_ns = 0, 0, start_ns

    def change(self, now_ns: int, by: int) -> None:
        """So many more, or fewer, are in flight from now on."""
        start_ns, end_ns = self._window
        until_ns = min(max(now_ns, start_ns), end_ns)
        if until_ns > self._last_ns:
            self._area += self.count * (until_ns - self._last_ns)
            self._last_ns = until_ns
        self.count += by
        self.peak = max(self.peak, self.count)

    def mean(self, now_ns: int) -> float:
        """Time-average from the window's start to now, or to its end."""
        self.change(now_ns, 0)
        start_ns, _ = self._window
        return self._area / (self._last_ns - start_ns) if self._last_ns > start_ns else 0.0
