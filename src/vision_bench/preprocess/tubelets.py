"""Tubelets that were preprocessed before: a live stream asks about the same frames again and again.

A tubelet (the frames that become one step in time) depends on no other, so its patches can be kept and copied. Frames
are compared pixel by pixel with those that were kept: no digest is as fast, and nothing can be mistaken for something
else. What that saves depends on how much work the patches were (docs/preprocess.md). It is off until asked for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vision_bench.preprocess.buffers import BufferPool
from vision_bench.preprocess.fast import VideoPreprocessor
from vision_bench.preprocess.geometry import Size
from vision_bench.preprocess.reference import Frames

SAMPLED_ROWS = 16
"""Of each frame, to find the tubelet that may be the same."""


@dataclass(frozen=True, slots=True)
class _Kept:
    pixels: NDArray[np.uint8]
    values: NDArray[Any]

    @property
    def size_bytes(self) -> int:
        return self.pixels.nbytes + self.values.nbytes


class TubeletCache:
    """Patches by the pixels they came from. Safe from several threads; the least recently used leave first."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        """Of pixels and patches together."""
        self.hits = 0
        self.misses = 0
        self.used_bytes = 0
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        # What leaves makes room for what comes: a fresh page costs more than the copy into it.
        self._pool = BufferPool(max_bytes // 4)

    @property
    def lookups(self) -> int:
        """How many tubelets were looked for."""
        return self.hits + self.misses

    @property
    def hit_rate(self) -> float | None:
        """Of all that were looked for, those that were found; None before the first."""
        return self.hits / self.lookups if self.lookups else None

    @property
    def text(self) -> str:
        """One line for people."""
        rate = "n/a" if self.hit_rate is None else f"{self.hit_rate:.1%}"
        return (
            f"{rate} of {self.lookups:,} tubelets were there, "
            f"{self.used_bytes / 1e6:,.0f} of {self.max_bytes / 1e6:,.0f} MB used"
        )

    def fill(self, preprocess: VideoPreprocessor, frames: Frames, target: Size, out: NDArray[Any]) -> None:
        """Write the patches of a clip, computing only those that are not there.

        Args:
            preprocess: what computes.
            frames: (T, H, W, 3) as it takes them.
            target: the size that the whole clip is given.
            out: (N, D) for all of it.
        """
        tubelet = preprocess.spec.temporal_patch_size
        pieces = [frames[first : first + tubelet] for first in range(0, len(frames), tubelet)]
        rows = len(out) // len(pieces)
        parts = [out[number * rows : (number + 1) * rows] for number in range(len(pieces))]
        keys = [(preprocess.spec, preprocess.dtype, target, piece.shape, _sample(piece)) for piece in pieces]
        missing = [n for n, key in enumerate(keys) if not self._copy(key, pieces[n], parts[n])]
        for first, last in _runs(missing):
            these = frames[first * tubelet : last * tubelet]
            preprocess(these, out=out[first * rows : last * rows], target=target)
        for n in missing:
            self._keep(keys[n], pieces[n], parts[n])

    def _copy(self, key: Hashable, pixels: Frames, out: NDArray[Any]) -> bool:
        """Copy the patches of the same pixels, if they are there."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
        found = kept is not None and _same(kept.pixels, pixels)
        if kept is not None and found:
            np.copyto(out, kept.values)
        with self._lock:
            self.hits += found
            self.misses += not found
        return found

    def _keep(self, key: Hashable, pixels: Frames, values: NDArray[Any]) -> None:
        if pixels.nbytes + values.nbytes > self.max_bytes:
            return
        kept = _Kept(self._pool.take(pixels.shape, np.uint8), self._pool.take(values.shape, values.dtype))
        np.copyto(kept.pixels, pixels)
        np.copyto(kept.values, values)
        with self._lock:
            before = self._kept.pop(key, None)
            self._kept[key] = kept
            self.used_bytes += kept.size_bytes - (before.size_bytes if before else 0)
            while self.used_bytes > self.max_bytes:
                self.used_bytes -= self._kept.popitem(last=False)[1].size_bytes


def _sample(pixels: Frames) -> int:
    """A number that is the same for the same pixels, from a few rows of each frame."""
    return hash(pixels[:, :: max(1, pixels.shape[1] // SAMPLED_ROWS)].tobytes())


def _same(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    """Whether all pixels are equal; eight bytes at a time where they lie together."""
    if not other.flags.c_contiguous:
        return bool(np.array_equal(one, other))
    a, b = one.reshape(-1), other.reshape(-1)
    whole = a.size - a.size % 8
    return bool(np.array_equal(a[:whole].view(np.uint64), b[:whole].view(np.uint64))) and bool(
        np.array_equal(a[whole:], b[whole:])
    )


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """First and one past the last of each run of neighbours."""
    start = None
    for at, number in enumerate(numbers):
        if start is None:
            start = number
        if at + 1 == len(numbers) or numbers[at + 1] != number + 1:
            yield start, number + 1
            start = None
