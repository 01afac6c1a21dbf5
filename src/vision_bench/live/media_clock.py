"""A sender's media timestamps as times on the server's clock: evenly spaced as sent, not as the network delivered.

A frame comes late by a delay that changes, never early. So the least of the delays seen lately tells how the two clocks
stand to each other, and each frame's time is its timestamp moved by that.
"""

from __future__ import annotations

from collections import deque

WINDOW_NS = 10_000_000_000
"""How long a delay is remembered: clocks that drift by 100 millionths part by 1 ms in that time."""
BREAK_NS = 5_000_000_000
"""Timestamps and arrivals that part by more than this from one frame to the next are no delay: the sender began anew,
or stood still together with its timestamps."""


class MediaClock:
    """Timestamps of one sender, in the order of its frames, to nanoseconds that always ascend.

    Args:
        rate: ticks of the timestamps a second; 90000 for video over RTP. They may wrap round at 2**32.
    """

    def __init__(self, *, rate: int = 90_000) -> None:
        self.rate = rate
        self.breaks = 0
        """How often the timestamps were not to be followed, and time went on from the arrival."""
        self._ticks = 0
        self._timestamp = 0
        self._arrived_ns: int | None = None
        self._at_ns: int | None = None
        self._ahead_ns = 0  # from media time to the server's clock
        self._delays: deque[tuple[int, int]] = deque()  # (arrived, arrived - media), the second ascending

    def at_ns(self, timestamp: int, *, arrived_ns: int) -> int:
        """When the frame was seen, as well as its timestamp tells: later than the frame before it, in any case."""
        step = (timestamp - self._timestamp + 2**31) % 2**32 - 2**31
        step_ns = step * 10**9 // self.rate
        self._timestamp = timestamp
        if self._arrived_ns is None or self._at_ns is None:
            at_ns = self._begin(arrived_ns)
        elif step <= 0 or step_ns == 0 or abs(arrived_ns - self._arrived_ns - step_ns) > BREAK_NS:
            self.breaks += 1
            at_ns = self._begin(max(arrived_ns, self._at_ns + 1))
        else:
            self._ticks += step
            at_ns = self._follow(arrived_ns, self._at_ns)
        self._arrived_ns, self._at_ns = arrived_ns, at_ns
        return at_ns

    def _begin(self, at_ns: int) -> int:
        self._ticks = 0
        self._delays.clear()
        self._ahead_ns = at_ns
        self._remember(at_ns, at_ns)
        return at_ns

    def _follow(self, arrived_ns: int, last_at_ns: int) -> int:
        media_ns = self._ticks * 10**9 // self.rate
        self._remember(arrived_ns, arrived_ns - media_ns)
        # Half of a frame's step at most, so that time never turns back while it finds its place.
        most_ns = max(0, (media_ns + self._ahead_ns - last_at_ns) // 2)
        self._ahead_ns += min(most_ns, max(-most_ns, self._delays[0][1] - self._ahead_ns))
        return max(media_ns + self._ahead_ns, last_at_ns + 1)

    def _remember(self, arrived_ns: int, ahead_ns: int) -> None:
        while self._delays and self._delays[-1][1] >= ahead_ns:
            self._delays.pop()
        self._delays.append((arrived_ns, ahead_ns))
        while self._delays[0][0] < arrived_ns - WINDOW_NS:
            self._delays.popleft()
