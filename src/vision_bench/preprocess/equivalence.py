"""How equal two results are: bit for bit, after rounding, within a level, or not; and where they first differ."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from vision_bench.errors import VisionBenchError
from vision_bench.preprocess.reference import Frames, Patches, levels, to_bfloat16
from vision_bench.preprocess.spec import Spec

Level = Literal["E0", "E1", "E2", "E3"]
"""From the best to the worst, so that the largest of several is the worst."""
Processor = Callable[[Frames], Patches]

MEANING: dict[Level, str] = {
    "E0": "every float32 byte is equal",
    "E1": "equal after rounding to bfloat16",
    "E2": "at most one 8-bit level off, on at most 0.5 % of values",
    "E3": "further apart: state the pixel error and check the task's score",
}

MOST_OFF_BY_ONE = 0.005
"""Share of values that E2 lets be a level off."""

SIZES = [
    (15, 480, 854),
    (15, 480, 848),
    (4, 480, 640),
    (5, 720, 1280),
    (3, 1080, 1920),
    (4, 64, 64),
    (7, 854, 480),
    (2, 33, 1200),
]
"""Worked sizes (frames, height, width): one filter, both, none; enlarged and shrunk; odd counts; portrait; a strip."""


class Levels(Protocol):
    """Settings that say themselves how far apart 8-bit levels are in what they give; a :class:`Spec` is looked up."""

    def levels(self) -> NDArray[np.float32]:
        """(D,) how many 8-bit levels a difference of 1 is, in each column."""


Settings = Spec | Levels


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two results, the second taken as right."""

    level: Level
    differing: int
    """Values whose bits are not equal."""
    values: int
    largest_levels: float
    """The largest difference, in 8-bit levels."""
    first: tuple[int, int] | None
    """Row and column of the first value that differs."""

    @property
    def text(self) -> str:
        """One line for people."""
        if self.first is None:
            return f"{self.level}: {MEANING[self.level]} ({self.values:,} values)"
        row, column = self.first
        return (
            f"{self.level}: {MEANING[self.level]}; {self.differing:,} of {self.values:,} values differ, by up to "
            f"{self.largest_levels:.3g} levels, first at row {row}, column {column}"
        )


class Unequal(VisionBenchError):
    """Two results that had to be equal and are not."""

    exit_code = 5


class Shapeless(Unequal):
    """Two results that are not even of one shape; one of the two sizes them wrongly."""


def compare(ours: Patches, theirs: Patches, spec: Settings) -> Comparison:
    """The level that two results of one input reach.

    Raises:
        Shapeless: different shapes or grids.
    """
    shapes = [(patches.pixel_values.shape, patches.grid_thw.tolist()) for patches in (ours, theirs)]
    if shapes[0] != shapes[1]:
        raise Shapeless(f"ours is {shapes[0]}, the other {shapes[1]}: the target sizes differ")
    one, other = ours.pixel_values, theirs.pixel_values
    unequal = one.view(np.uint32) != other.view(np.uint32)
    differing = int(np.count_nonzero(unequal))
    if not differing:
        return Comparison("E0", 0, one.size, 0.0, None)
    row, column = np.unravel_index(int(np.argmax(unequal)), unequal.shape)
    apart = _levels_apart(one, other, spec)
    return Comparison(_level(one, other, apart), differing, one.size, float(apart.max()), (int(row), int(column)))


def _level(one: NDArray[np.float32], other: NDArray[np.float32], apart: NDArray[np.float32]) -> Level:
    if np.array_equal(to_bfloat16(one), to_bfloat16(other)):
        return "E1"
    off = np.count_nonzero(apart > 0.5) / apart.size
    return "E2" if apart.max() < 1.5 and off <= MOST_OFF_BY_ONE else "E3"


def _levels_apart(one: NDArray[np.float32], other: NDArray[np.float32], spec: Settings) -> NDArray[np.float32]:
    """(N, D) absolute differences, with the normalisation undone."""
    apart: NDArray[np.float32] = np.abs(one - other) * (levels(spec) if isinstance(spec, Spec) else spec.levels())
    return apart


@dataclass(frozen=True, slots=True)
class Verdict:
    """What many inputs come to."""

    level: Level
    """The worst of them."""
    against: str
    """What was compared with, and its versions."""
    cases: dict[str, Comparison]
    """By size of input, as people write it."""


def check(ours: Processor, theirs: Processor, spec: Settings, inputs: Iterable[Frames], against: str) -> Verdict:
    """Compare two processors on the same inputs.

    Args:
        ours: the one in question.
        theirs: the one that is right.
        spec: the settings of both.
        inputs: frames as the processors take them.
        against: what ``theirs`` is.

    Raises:
        Shapeless: they size an input differently.
    """
    found = {describe(frames): compare(ours(frames), theirs(frames), spec) for frames in inputs}
    return Verdict(max((one.level for one in found.values()), default="E0"), against, found)


def describe(frames: Frames) -> str:
    """The size of an input, as people write it."""
    *count, height, width, _ = frames.shape
    return f"{count[0]} x {width}x{height}" if count else f"{width}x{height}"


def sample_clips(count: int, seed: int) -> Iterator[Frames]:
    """``count`` clips: the worked sizes first, then sizes drawn at random, of noise and of flat areas in turn."""
    draw = random.Random(seed)  # noqa: S311  sizes, not secrets
    pixels = np.random.default_rng(seed)
    for at in range(count):
        if at < len(SIZES):
            t, h, w = SIZES[at]
        else:
            t, h = draw.randint(2, 9), draw.randint(4, 700)
            w = draw.randint(max(4, h // 100), min(1200, h * 100))
        frames = pixels.integers(0, 256, (t, h, w, 3), np.uint8)
        # Black and white overshoot: what is cut off at 0 and 255 shows there and in few photographs.
        yield frames if at % 2 == 0 else np.where(frames > 127, np.uint8(255), np.uint8(0))


def sample_images(count: int, seed: int) -> Iterator[Frames]:
    """``count`` images of the same sizes: the first frames of the clips."""
    for frames in sample_clips(count, seed):
        yield frames[0]
