"""A clock that stands until it is moved."""

from __future__ import annotations


class Clock:
    """Nanoseconds that a test sets; also counts 1_777_529_631 s of wall time to its zero."""

    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return self.now_ns + 1_777_529_631_184_000_000

    def pass_seconds(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)
