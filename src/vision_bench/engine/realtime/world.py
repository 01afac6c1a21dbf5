"""What the camera sees: the session's picture on walls that stand one behind the other, without end.

::

    camera          near wall           far wall         t = distance to the near wall / SPACING, 0 < t <= 1
      |---- t ----------|                   |            scale = pixels of a wall for each pixel seen:
      |---- t + 1 --------------------------|            t of the near wall, t + 1 of the far one

At the start t is 1 and the near wall fills the view: what is seen is the picture. Going ahead makes it larger; before
it is reached it turns transparent, and the wall behind it, which by then looks as the first one did at the start, is
the near one. A wall is mirrored at its edges, so that it has none. Steps aside move the near wall further than the far
one; turns move both alike. A full turn comes back to where it began.

There is no map: each picture follows from the last one by the camera's own movement, so that a movement always shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vision_bench.engine.realtime.picture import Plane, Planes
from vision_bench.engine.realtime.pose import ORIGIN, Pose, product, rotate
from vision_bench.wire.realtime.camera import Quaternion, Vector

SPACING = 2.0
"""Between walls, in the session's units: 40 latent frames of a held key."""
OPAQUE_FROM, CLEAR_UNTIL = 0.85, 0.4
"""Distances t at which the near wall begins to turn transparent, and has become so."""
FARTHEST = 1e9
"""What a single movement is cut to."""
_FRACTION_BITS = 16

Offset = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Movement:
    """From one picture to the next as the camera feels it: lengths in the session's units, angles in radians."""

    right: float
    up: float
    ahead: float
    pitch: float
    """Positive looks down."""
    yaw: float
    """Positive looks to the right."""
    roll: float
    """Positive makes the picture turn against the clock."""


def movement(before: Pose, after: Pose) -> Movement:
    """What brings the camera from one pose to the other."""
    x, y, z, w = before.rotation
    back: Quaternion = (-x, -y, -z, w)
    way: Vector = (
        after.position[0] - before.position[0],
        after.position[1] - before.position[1],
        after.position[2] - before.position[2],
    )
    right, up, ahead = (_bounded(part) for part in rotate(back, way))
    pitch, yaw, roll = _turn(product(back, after.rotation))
    return Movement(right, up, ahead, pitch, yaw, roll)


def _bounded(length: float) -> float:
    """Sums near the end of the range come out as infinite, or as no number: then nothing has moved."""
    return max(-FARTHEST, min(FARTHEST, length)) if math.isfinite(length) else 0.0


def _turn(rotation: Quaternion) -> Vector:
    """The rotation as a vector along its axis, as long as its angle: the short way round."""
    x, y, z, w = rotation if rotation[3] >= 0 else tuple(-part for part in rotation)
    sine = math.hypot(x, y, z)
    scale = 2.0 if sine < 1e-9 else 2 * math.atan2(sine, w) / sine
    return x * scale, y * scale, z * scale


class World:
    """One session's. Ask for pictures in order."""

    def __init__(self, picture: Planes) -> None:
        """``picture`` has even sides."""
        height, width = picture.luma.shape
        self._picture = picture
        # Two picture widths are a half turn: after a whole one the mirrored wall has come round to itself.
        self._focal = 2 * width / math.pi
        self._pose = ORIGIN
        self._t = 1.0
        self._roll = 0.0
        self._near: Offset = (0.0, 0.0)
        self._far: Offset = (0.0, 0.0)
        self._x = np.arange(width) - (width - 1) / 2
        self._y = np.arange(height) - (height - 1) / 2

    def move(self, pose: Pose) -> None:
        """Bring the camera to ``pose``."""
        step = movement(self._pose, pose)
        self._pose = pose
        per_unit = self._focal / SPACING
        aside = (step.right * per_unit, -step.up * per_unit)
        around = (step.yaw * self._focal, step.pitch * self._focal)
        self._roll = math.remainder(self._roll + step.roll, math.tau)
        self._near = self._shifted(self._near, aside, around, self._t)
        self._far = self._shifted(self._far, aside, around, self._t + 1)
        self._go(step.ahead / SPACING)

    def picture(self) -> Planes:
        """What is seen now."""
        share = min(1.0, max(0.0, (self._t - CLEAR_UNTIL) / (OPAQUE_FROM - CLEAR_UNTIL)))
        if share == 1.0:
            return self._wall(self._near, self._t)
        far = self._wall(self._far, self._t + 1)
        if share == 0.0:
            return far
        near = self._wall(self._near, self._t)
        weight = round(share * 256)
        return Planes(
            _mixed(near.luma, far.luma, weight),
            _mixed(near.blue, far.blue, weight),
            _mixed(near.red, far.red, weight),
        )

    def _go(self, walls: float) -> None:
        """Go ahead by so many times the spacing, past walls that cannot be seen any more by then."""
        left = self._t - walls
        passed = 1 - math.ceil(left)
        # Near 0, t may come out as 0 or as the wall before: both are the same place.
        self._t = min(1.0, max(left + passed, 1e-9))
        if passed > 0:
            self._near = self._far
        elif passed < 0:
            self._far = self._near

    def _shifted(self, offset: Offset, aside: Offset, around: Offset, scale: float) -> Offset:
        """A wall's offset after a movement, in its pixels; a turn is the same for the eye whatever its scale."""
        height, width = self._picture.luma.shape
        return (
            math.fmod(offset[0] + aside[0] + around[0] * scale, 2 * width),
            math.fmod(offset[1] + aside[1] + around[1] * scale, 2 * height),
        )

    def _wall(self, offset: Offset, scale: float) -> Planes:
        height, width = self._picture.luma.shape
        cosine, sine = math.cos(self._roll) * scale, math.sin(self._roll) * scale
        centre_x, centre_y = (width - 1) / 2 + offset[0], (height - 1) / 2 + offset[1]
        columns = _folded(_grid(self._x * cosine + centre_x, self._y * -sine), width)
        rows = _folded(_grid(self._x * sine + centre_y, self._y * cosine), height)
        colour_at = (rows[::2, ::2] >> 1) * (width // 2) + (columns[::2, ::2] >> 1)
        rows *= width
        rows += columns
        picture = self._picture
        return Planes(picture.luma.take(rows), picture.blue.take(colour_at), picture.red.take(colour_at))


def _grid(along: NDArray[np.float64], down: NDArray[np.float64]) -> NDArray[np.int32]:
    """(H, W) sums of (W,) and (H,), rounded: the additions are whole numbers, which are twice as fast."""
    one = 1 << _FRACTION_BITS
    fixed_along = np.rint(along * one + one // 2).astype(np.int32)
    fixed_down = np.rint(down * one).astype(np.int32)
    grid = fixed_along[None, :] + fixed_down[:, None]
    grid >>= _FRACTION_BITS
    return grid


def _folded(places: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    """Pixel numbers on a mirrored wall as pixel numbers of the picture."""
    low, high = int(places.min()), int(places.max())
    turned = np.arange(low, high + 1, dtype=np.int32) % (2 * size)
    table = np.minimum(turned, 2 * size - 1 - turned)
    places -= low
    return table.take(places)


def _mixed(near: Plane, far: Plane, weight: int) -> Plane:
    """``weight`` parts of 256 of the near wall, the rest of the far one."""
    mixed = near.astype(np.uint16)
    mixed *= np.uint16(weight)
    mixed += far * np.uint16(256 - weight)
    mixed >>= 8
    return mixed.astype(np.uint8)
