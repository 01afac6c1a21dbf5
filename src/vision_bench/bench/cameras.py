"""Live streams as a load: cameras that have a frame each period, whatever the server does, and what becomes of frames
that come while their camera's last one is still being looked at.

One question a camera at a time: an answer about an older frame is worth less than one about the frame that is there
now, so nobody who watches live queues frames behind each other. ``none`` does it all the same, to show what it costs.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from vision_bench.bench.arrivals import MAX_ARRIVALS, Schedule
from vision_bench.errors import InvalidRequest

Drop = Literal["newest", "busy", "none"]
DROPS: tuple[Drop, ...] = ("newest", "busy", "none")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CameraLoad:
    """Cameras of one step.

    Attributes:
        period_ns: from one frame of a camera to its next.
        drop: ``newest`` keeps the last frame that came meanwhile and drops the one before it; ``busy`` drops what
            comes meanwhile; ``none`` sends every frame, in order.
        deadline_ns: an answer is on time when it can be used within this, counted from its frame.
    """

    count: int
    period_ns: int
    drop: Drop
    deadline_ns: int

    def camera(self, index: int) -> int:
        """Whose frame the arrival with this place in the step is."""
        return index % self.count


def camera_schedule(load: CameraLoad, *, duration_seconds: float, seed: str) -> Schedule:
    """When each frame is there: every camera at its own phase, drawn from the seed, then every period.

    Raises:
        InvalidRequest: the step holds no whole period, or over ten million frames.
    """
    rounds = int(duration_seconds * 1e9) // load.period_ns
    if not 1 <= rounds * load.count <= MAX_ARRIVALS:
        raise InvalidRequest(
            f"{load.count} cameras for {duration_seconds:g} s with a frame each {load.period_ns / 1e6:g} ms are "
            f"{rounds * load.count} frames; it must be 1 to {MAX_ARRIVALS:,}"
        )
    draw = random.Random(seed)  # noqa: S311 - a schedule
    phases = sorted(draw.randrange(load.period_ns) for _ in range(load.count))
    offsets = [phase + load.period_ns * number for number in range(rounds) for phase in phases]
    return Schedule(offsets, rounds * load.period_ns)


class Mailbox(Generic[R]):
    """Frames of one camera that wait for the answer to the one before.

    Args:
        drop: what happens to a frame that nobody is free for.
        on_drop: takes each frame that is dropped.
    """

    def __init__(self, drop: Drop, on_drop: Callable[[R], None]) -> None:
        self._drop = drop
        self._on_drop = on_drop
        self._waiting: deque[R] = deque()
        self.is_busy = False

    def offer(self, frame: R) -> R | None:
        """A frame is there: the one to send now, or None while the camera's last is still out."""
        if not self.is_busy:
            self.is_busy = True
            return frame
        if self._drop == "busy":
            self._on_drop(frame)
            return None
        if self._drop == "newest" and self._waiting:
            self._on_drop(self._waiting.popleft())
        self._waiting.append(frame)
        return None

    def next(self) -> R | None:
        """The answer is there: the frame to send next, or None."""
        if self._waiting:
            return self._waiting.popleft()
        self.is_busy = False
        return None

    def empty(self) -> list[R]:
        """What still waits, taken out."""
        left = list(self._waiting)
        self._waiting.clear()
        return left
