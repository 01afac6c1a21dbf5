"""What a change of the prompt does to the picture: a colour of its own, which comes as the transition goes on."""

from __future__ import annotations

import binascii
import math
from typing import NamedTuple

import numpy as np

from vision_bench.engine.realtime.picture import Plane, Planes

STRENGTH = 28
"""Steps of 256 by which a prompt moves the colour: seen at once, and nothing is lost in it."""


class Tint(NamedTuple):
    """Added to the colour planes."""

    blue: float
    red: float


NO_TINT = Tint(0.0, 0.0)


def tint_of(prompt: str) -> Tint:
    """The colour that stands for a prompt: a direction on the colour circle, the same every time."""
    angle = binascii.crc32(prompt.encode("utf-8", "surrogatepass")) / 2**32 * math.tau
    return Tint(STRENGTH * math.cos(angle), STRENGTH * math.sin(angle))


class PromptTint:
    """One session's. The prompt that it began with has no colour, so that its first picture is the one given."""

    def __init__(self, prompt: str) -> None:
        self._first = self._prompt = prompt
        self._from = self._now = NO_TINT

    def follow(self, prompt: str, share: float) -> None:
        """The next chunk is made under ``prompt``, of which ``share`` (0 to 1) has come into effect."""
        if prompt != self._prompt:
            self._prompt, self._from = prompt, self._now
        target = NO_TINT if prompt == self._first else tint_of(prompt)
        self._now = Tint(*(old + (new - old) * share for old, new in zip(self._from, target, strict=True)))

    def applied(self, picture: Planes) -> Planes:
        """The picture in that colour."""
        if self._now == NO_TINT:
            return picture
        return Planes(picture.luma, _moved(picture.blue, self._now.blue), _moved(picture.red, self._now.red))


def _moved(plane: Plane, by: float) -> Plane:
    return np.clip(plane.astype(np.int16) + round(by), 0, 255).astype(np.uint8)
