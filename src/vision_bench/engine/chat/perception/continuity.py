"""Do two frames show the same scene? Blocks of one are looked for in the other, near the place they came from.

A moving camera and moving things shift blocks and keep them; a cut replaces them. Comparing colours or pixels cannot
tell a fast pan from a cut when frames are half a second apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vision_bench.engine.chat.perception.libraries import load_cv2

BLOCK = 16

REACH_SHARE_PER_SECOND = 0.22
"""How far a block may travel: this share of the width a second sideways, half as far up or down."""

REACH_PIXELS = (8, 64)
"""Least and greatest reach, pixels of the compared pictures."""

TEXTURED = 3.0
"""Standard deviation of luma from which a block can be told from another at all."""

PLAIN_STEP = 25.0
"""Difference of mean luma, 0 to 255, that parts two pictures without texture."""

ALIKE = 0.8
"""Normalised correlation from which a block counts as found."""


def share_found_again(first: NDArray[np.uint8], second: NDArray[np.uint8], *, seconds_apart: float) -> float:
    """The smaller of two shares: blocks of each luma picture (h, w) that are found in the other, 0 to 1.

    A picture without texture has nothing to find: two such are one scene when they are about equally bright, and a
    plain one after a textured one is another scene.
    """
    least, greatest = REACH_PIXELS
    reach = round(min(greatest, max(least, REACH_SHARE_PER_SECOND * seconds_apart * first.shape[1])))
    there, back = _found(first, second, reach), _found(second, first, reach)
    if there is None and back is None:
        return 1.0 if abs(float(first.mean()) - float(second.mean())) < PLAIN_STEP else 0.0
    return min(share or 0.0 for share in (there, back))


def _found(blocks_of: NDArray[np.uint8], within: NDArray[np.uint8], reach: int) -> float | None:
    """Share of the textured blocks of one picture that the other holds; None where there is no texture."""
    cv2 = load_cv2()
    height, width = blocks_of.shape
    scores = []
    for y in range(0, height - BLOCK + 1, BLOCK):
        for x in range(0, width - BLOCK + 1, BLOCK):
            block = blocks_of[y : y + BLOCK, x : x + BLOCK]
            if block.std() < TEXTURED:
                continue
            rows = slice(max(0, y - reach // 2), min(height, y + BLOCK + reach // 2))
            columns = slice(max(0, x - reach), min(width, x + BLOCK + reach))
            match = cv2.matchTemplate(within[rows, columns], block, cv2.TM_CCOEFF_NORMED)
            # A plain stretch gives infinities in place of a correlation.
            scores.append(float(match[match <= 1.001].max(initial=0.0)))
    return sum(score >= ALIKE for score in scores) / len(scores) if scores else None
