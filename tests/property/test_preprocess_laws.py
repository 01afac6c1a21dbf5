"""Laws of turning frames into patches, whatever their size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.preprocess_cases import COMPILED, noise, same_bits, small_image, small_video

from vision_bench.preprocess import reference
from vision_bench.preprocess.fast import ImagePreprocessor, VideoPreprocessor
from vision_bench.preprocess.geometry import Size, clip_target, frame_target

SIDES = st.one_of(st.integers(1, 40), st.integers(1, 400))
PIXELS = st.integers(1, 30_000_000)


def sizes(sides: st.SearchStrategy[int]) -> st.SearchStrategy[Size]:
    """Frames that the processors take, enlarged to one token a side or not."""
    return st.builds(Size, sides, sides).filter(lambda size: max(size) <= 190 * min(size))


LARGE_SIZES = sizes(st.integers(1, 10_000))


@given(LARGE_SIZES, st.integers(2, 800), st.sampled_from([28, 32, 48]), st.lists(PIXELS, min_size=2, max_size=2))
def test_targets_are_whole_tokens(size: Size, frames: int, factor: int, limits: list[int]) -> None:
    """Every side is a positive multiple of the factor, whatever the limits."""
    low, high = sorted(limits)
    for_frame = frame_target(size, factor=factor, min_pixels=low, max_pixels=high)
    for_clip = clip_target(frames, size, factor=factor, temporal_factor=2, min_pixels=low, max_pixels=high)
    assert all(side > 0 and side % factor == 0 for side in (*for_frame, *for_clip))


@given(LARGE_SIZES, PIXELS)
def test_a_larger_limit_never_gives_a_smaller_frame(size: Size, limit: int) -> None:
    """Neither side shrinks when more pixels are allowed."""
    one, other = (frame_target(size, factor=28, min_pixels=1, max_pixels=most) for most in (limit, 2 * limit))
    assert one.height <= other.height and one.width <= other.width


@given(SIDES, SIDES, SIDES, SIDES, st.integers(0, 255))
def test_a_plain_picture_stays_plain(height: int, width: int, tall: int, wide: int, value: int) -> None:
    """The weights of every pixel sum to one closely enough that no 8-bit value drifts."""
    frames = np.full((1, height, width, 3), value, np.uint8)
    assert (reference.resize(frames, Size(tall, wide)) == value).all()


@given(SIDES, SIDES, SIDES, SIDES, st.integers(0, 99))
def test_filtering_one_frame_is_filtering_it_among_others(
    height: int, width: int, tall: int, wide: int, seed: int
) -> None:
    """Frames do not touch each other."""
    frames = noise(seed, 2, height, width)
    both = reference.resize(frames, Size(tall, wide))
    assert (reference.resize(frames[1:], Size(tall, wide)) == both[1:]).all()


@pytest.mark.parametrize("compiled", COMPILED)
@settings(max_examples=60, deadline=None)
@given(sizes(SIDES), st.integers(2, 7), st.data())
def test_the_fast_way_has_the_oracles_bits(compiled: bool, size: Size, frames: int, data: st.DataObject) -> None:
    """Portrait, tiny, odd frame counts, views into larger frames, any limit on the volume, several threads."""
    limit = data.draw(st.integers(2048, 400_000), "max_pixels")
    spec = small_video(size={"shortest_edge": min(1024, limit), "longest_edge": limit})
    left, top, step = (data.draw(st.integers(1, 5), name) for name in ("left", "top", "step"))
    view = noise(frames, frames * step, size.height + top, size.width + left)[::step, top:, left:]
    with VideoPreprocessor(spec, threads=data.draw(st.integers(1, 3), "threads"), compiled=compiled) as preprocess:
        found = preprocess(view)
    expected = reference.video(view, spec)
    assert same_bits(found.pixel_values, expected.pixel_values)
    assert found.grid_thw.tolist() == expected.grid_thw.tolist()


@pytest.mark.parametrize("compiled", COMPILED)
@settings(max_examples=40, deadline=None)
@given(sizes(SIDES), st.integers(784, 200_000))
def test_images_too(compiled: bool, size: Size, limit: int) -> None:
    """Patches of 14 pixels fill no whole vector."""
    spec = small_image(min_pixels=784, max_pixels=limit)
    pixels = noise(limit, *size)
    found = ImagePreprocessor(spec, compiled=compiled)(pixels)
    assert same_bits(found.pixel_values, reference.image(pixels, spec).pixel_values)
