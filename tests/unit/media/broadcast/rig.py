"""A programme without espeak: a speaker that hums, as long as the sentence has letters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vision_bench.media.broadcast.fonts import FontBook, find_font
from vision_bench.media.broadcast.genres import GENRES
from vision_bench.media.broadcast.plan import Programme, plan_programme


class Hummer:
    """Says a sentence as 300 Hz, 60 ms a letter."""

    name = "hummer"
    rate = 8000

    def say(self, text: str, voice: str) -> NDArray[np.float32]:
        count = len(text) * self.rate * 60 // 1000
        return np.sin(np.arange(count) * 2 * np.pi * 300 / self.rate).astype(np.float32) * 0.5


def hangul_font() -> FontBook:
    """The font of the extra `broadcast`, which the development lock holds: without it the tests fail."""
    return find_font()


def hummed(
    genre: str = "drama", *, seconds: float = 72, lead: float = 0.0, seed: int = 7, stamp: bool = True
) -> Programme:
    """A planned programme spoken by the hummer."""
    return plan_programme(
        GENRES[genre],
        seconds=seconds,
        lead_seconds=lead,
        seed=seed,
        stamp=stamp,
        speaker=Hummer(),
        fonts=hangul_font(),
    )
