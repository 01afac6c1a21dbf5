"""torch's antialiased bicubic filter for 8-bit pixels: which source pixels make a target pixel, in whole numbers.

torch resizes uint8 frames on a CPU with 16-bit integer weights, first across, then down, and rounds to 8 bits after
each. Sums of integers do not depend on their order, so AVX2, AVX-512, NEON and plain C give the same bits, and so does
anything else that uses these weights. Checked against torch 2.13 (``_compute_index_ranges_int16_weights`` there).

Pillow's filter has the same shape, weights of 22 bits, and does not always go across first: other bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SHARPNESS = -0.5
"""The ``a`` of the cubic, as in Pillow. torch takes -0.75 without antialiasing."""
_MAX_PRECISION_BITS = 22


@dataclass(frozen=True, slots=True)
class Axis:
    """How ``length`` target pixels of a row or column are made: ``sum(weights * source) + half >> precision``."""

    starts: NDArray[np.int32]
    """(length,) the first source pixel of each."""
    weights: NDArray[np.int16]
    """(length, taps) for the source pixels from there on; every window lies within the source."""
    precision: int
    """Bits after the point in ``weights``."""

    @property
    def taps(self) -> int:
        """Source pixels that a target pixel looks at, padded with zero weights to the same number for all."""
        return int(self.weights.shape[1])


def bicubic_axis(source: int, target: int) -> Axis | None:
    """The filter from ``source`` to ``target`` pixels; None when they are equal, for then nothing is filtered."""
    if source == target:
        return None
    scale = source / target
    support = 2.0 * scale if scale >= 1.0 else 2.0
    longest = math.ceil(support) * 2 + 1
    center = scale * (np.arange(target, dtype=np.float64) + 0.5)
    first = np.maximum((center - support + 0.5).astype(np.int64), 0)
    count = np.minimum((center + support + 0.5).astype(np.int64), source) - first
    count = np.clip(count, 0, longest)
    exact = _normalised(first, count, center, 1.0 / scale if scale >= 1.0 else 1.0)
    precision = _precision(float(exact.max()))
    scaled = exact * (1 << precision)
    # The C code adds or takes a half and cuts off, which is not what rint does with a half.
    whole = np.where(scaled < 0, scaled - 0.5, scaled + 0.5).astype(np.int32).astype(np.int16)
    return _inside(first, whole[:, : int(count.max())], source, precision)


def _normalised(
    first: NDArray[np.int64], count: NDArray[np.int64], center: NDArray[np.float64], inverse: float
) -> NDArray[np.float64]:
    """(length, taps) weights that sum to one. Operation by operation as in torch: the last bit matters here."""
    weights = np.zeros((len(first), int(count.max())))
    total = np.zeros(len(first))
    for tap in range(weights.shape[1]):
        value = np.where(tap < count, _cubic(np.abs((tap + first - center + 0.5) * inverse)), 0.0)
        weights[:, tap] = value
        total += value
    return np.divide(weights, total[:, None], out=weights, where=total[:, None] != 0)


def _cubic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keys' cubic at distances ``x`` >= 0."""
    a = _SHARPNESS
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _precision(largest: float) -> int:
    """As many bits as leave the largest weight within 15."""
    bits = 0
    while bits < _MAX_PRECISION_BITS and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    return bits


def _inside(first: NDArray[np.int64], weights: NDArray[np.int16], source: int, precision: int) -> Axis:
    """Give every pixel the same number of taps without looking past the end: move late windows back, pad in front."""
    starts = np.minimum(first, source - weights.shape[1])
    back = first - starts
    padded = np.zeros_like(weights)
    for tap in range(weights.shape[1]):
        moved = np.flatnonzero(tap + back < weights.shape[1])
        padded[moved, tap + back[moved]] = weights[moved, tap]
    return Axis(starts.astype(np.int32), padded, precision)
