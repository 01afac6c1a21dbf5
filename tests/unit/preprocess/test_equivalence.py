"""The ladder, rung by rung."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.preprocess_cases import noise, small_image, small_video

from vision_bench.preprocess import reference
from vision_bench.preprocess.equivalence import (
    SIZES,
    Shapeless,
    check,
    compare,
    describe,
    sample_clips,
    sample_images,
)
from vision_bench.preprocess.reference import Patches

SPEC = small_video()
RIGHT = reference.video(noise(1, 4, 64, 96), SPEC)


def changed(values: NDArray[np.float32]) -> Patches:
    return Patches(values, RIGHT.grid_thw)


def test_equal_bytes_are_e0() -> None:
    """Nothing differs, so nothing is pointed at."""
    found = compare(changed(RIGHT.pixel_values.copy()), RIGHT, SPEC)
    assert (found.level, found.differing, found.first, found.largest_levels) == ("E0", 0, None, 0.0)
    assert found.values == RIGHT.pixel_values.size


def test_the_last_bit_is_e1() -> None:
    """One unit in the last place of one value: gone in bfloat16, and found where it is."""
    values = RIGHT.pixel_values.copy()
    values.view(np.uint32)[7, 11] ^= 1
    found = compare(changed(values), RIGHT, SPEC)
    assert (found.level, found.differing, found.first) == ("E1", 1, (7, 11))
    assert "row 7, column 11" in found.text
    assert "1 of 73,728" in found.text


def test_a_negative_zero_is_not_a_zero() -> None:
    """Equal numbers are not yet equal bytes."""
    spec = small_video(image_mean=[0.0, 0.0, 0.0], image_std=[1.0, 1.0, 1.0])
    black = reference.video(np.zeros((2, 32, 32, 3), np.uint8), spec)
    assert compare(Patches(-black.pixel_values, black.grid_thw), black, spec).level != "E0"


@pytest.mark.parametrize(
    ("levels", "share", "level"), [(1, 0.004, "E2"), (1, 0.006, "E3"), (2, 0.0001, "E3"), (6, 0.1, "E3")]
)
def test_e2_is_one_level_on_half_a_percent(levels: int, share: float, level: str) -> None:
    """More values, or further off, is E3."""
    values = RIGHT.pixel_values.copy()
    count = int(share * values.size)
    values.ravel()[:count] += np.float32(levels / 127.5)
    found = compare(changed(values), RIGHT, SPEC)
    assert found.level == level
    assert found.largest_levels == pytest.approx(levels, abs=1e-3)


def test_levels_are_counted_in_each_channels_own_scale() -> None:
    """CLIP's deviations differ by colour; a level is a level in all of them."""
    spec = small_image()
    pixels = noise(2, 56, 56)
    brighter = np.minimum(pixels, 254) + np.uint8(1)
    found = compare(reference.image(brighter, spec), reference.image(np.minimum(pixels, 254), spec), spec)
    assert found.largest_levels == pytest.approx(1, abs=1e-3)


def test_other_sizes_are_no_comparison() -> None:
    """A wrong target size is said as such."""
    with pytest.raises(Shapeless, match="target sizes differ"):
        compare(reference.video(noise(1, 4, 64, 64), SPEC), RIGHT, SPEC)


def test_a_verdict_is_the_worst_case() -> None:
    """One input that is off decides."""

    def slightly_off(frames: NDArray[np.uint8]) -> Patches:
        found = reference.video(frames, SPEC)
        if len(frames) == 3:
            found.pixel_values.view(np.uint32)[0, 0] ^= 1
        return found

    inputs = [noise(1, t, 40, 60) for t in (2, 3, 4)]
    verdict = check(slightly_off, lambda frames: reference.video(frames, SPEC), SPEC, inputs, "itself")
    assert verdict.level == "E1"
    assert [one.level for one in verdict.cases.values()] == ["E0", "E1", "E0"]
    assert list(verdict.cases) == ["2 x 60x40", "3 x 60x40", "4 x 60x40"]


def test_samples_begin_with_the_worked_sizes_and_repeat_by_seed() -> None:
    """The same seed is the same pixels; every other input is black and white."""
    clips = list(sample_clips(10, 3))
    assert [clip.shape[:3] for clip in clips[: len(SIZES)]] == SIZES
    assert all((one == other).all() for one, other in zip(clips, sample_clips(10, 3), strict=True))
    assert set(np.unique(clips[9]).tolist()) <= {0, 255}
    assert [describe(image) for image in sample_images(2, 3)] == ["854x480", "848x480"]
