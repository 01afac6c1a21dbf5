"""Sizes that the stock processors give, and what they refuse."""

from __future__ import annotations

import pytest

from vision_bench.errors import InvalidMedia
from vision_bench.preprocess.geometry import (
    Grid,
    Size,
    budget_target,
    capped_clip_limit,
    capped_frame_limit,
    clip_target,
    frame_target,
    patch_grid,
)

QWEN3 = {"factor": 32, "temporal_factor": 2, "min_pixels": 4096, "max_pixels": 25_165_824}
"""A Qwen3-VL-8B checkpoint's video limits: pixels times frames."""
QWEN2 = {"factor": 28, "min_pixels": 128 * 28 * 28, "max_pixels": 768 * 28 * 28}
"""The video limits of a Qwen2-VL checkpoint: pixels of a frame."""


@pytest.mark.parametrize(
    ("width", "height", "frames", "target", "tokens_per_frame"),
    [
        (854, 480, 15, (864, 480), 202.5),
        (848, 480, 15, (832, 480), 195),  # 26.5 tokens across: half to even
        (640, 480, 15, (640, 480), 150),
        (1280, 720, 15, (1280, 704), 440),
        (1920, 1080, 16, (1664, 928), 754),  # the volume of 16 frames is past the limit
        (1920, 1080, 8, (1920, 1088), 1020),
        (426, 240, 17, (416, 256), 52),
    ],
)
def test_worked_sizes_of_qwen3(
    width: int, height: int, frames: int, target: tuple[int, int], tokens_per_frame: float
) -> None:
    """Sizes and tokens a frame worked out by hand and seen from the stock processor."""
    size = clip_target(frames, Size(height, width), **QWEN3)
    assert (size.width, size.height) == target
    one_tubelet = patch_grid(2, size, patch_size=16, temporal_patch_size=2)
    assert one_tubelet.tokens(2) / 2 == tokens_per_frame


def test_fifteen_frames_of_480p_are_eight_tubelets_and_3240_tokens() -> None:
    """The odd frame is repeated, so it costs a whole tubelet."""
    grid = patch_grid(15, Size(480, 864), patch_size=16, temporal_patch_size=2)
    assert grid == Grid(8, 30, 54)
    assert grid.patches == 12_960
    assert grid.tokens(2) == 3240


def test_the_number_of_frames_is_rounded_half_to_even_for_the_limit_and_up_for_the_grid() -> None:
    """13 frames are sized as 12 and padded to 14; 17 are sized as 16 and padded to 18."""
    size = Size(320, 320)
    for frames, sized_as, padded in ((13, 12, 14), (17, 16, 18)):
        limit = sized_as * 320 * 320
        options = {"factor": 32, "temporal_factor": 2, "min_pixels": 1}
        assert clip_target(frames, size, **options, max_pixels=limit) == size
        assert clip_target(frames, size, **options, max_pixels=limit - 1) < size
        assert patch_grid(frames, size, patch_size=16, temporal_patch_size=2).t == padded // 2


@pytest.mark.parametrize(
    ("width", "height", "grid"),
    [
        (854, 480, (34, 60)),
        (848, 480, (34, 60)),
        (640, 360, (26, 46)),
        (1920, 1080, (40, 72)),
        (64, 64, (24, 24)),  # enlarged to the smallest area
        (426, 240, (18, 30)),
    ],
)
def test_worked_sizes_of_qwen2(width: int, height: int, grid: tuple[int, int]) -> None:
    """Grids that the stock Qwen2-VL video processor gives, whose limits are about one frame."""
    size = frame_target(Size(height, width), **QWEN2)
    assert patch_grid(1, size, patch_size=14, temporal_patch_size=2)[1:] == grid


def test_an_image_keeps_one_token_a_side_even_past_its_limit() -> None:
    """A strip scaled down to its area would lose its short side."""
    assert frame_target(Size(30, 5000), factor=28, min_pixels=1, max_pixels=28 * 28 * 4).height == 28


def test_a_frame_smaller_than_one_token_is_enlarged_first() -> None:
    """Qwen3-VL enlarges 10x20 to 32x64 before it looks at any limit."""
    assert clip_target(4, Size(10, 20), **{**QWEN3, "min_pixels": 1}) == Size(32, 64)


def test_what_cannot_be_sized_is_refused_with_its_numbers() -> None:
    """Too few frames, nothing in the frame, longer than 200 times its width."""
    with pytest.raises(InvalidMedia, match=r"1 frame.*2 or more"):
        clip_target(1, Size(480, 854), **QWEN3)
    for empty in (Size(0, 100), Size(100, 0)):
        with pytest.raises(InvalidMedia, match="nothing in it"):
            clip_target(4, empty, **QWEN3)
        with pytest.raises(InvalidMedia, match="nothing in it"):
            frame_target(empty, **QWEN2)
    with pytest.raises(InvalidMedia, match="10x2010 pixels is more than 200 times"):
        frame_target(Size(2010, 10), **QWEN2)
    with pytest.raises(InvalidMedia, match="40x8040 pixels is more than 200 times"):
        clip_target(4, Size(8040, 40), **QWEN3)
    assert frame_target(Size(2000, 10), **QWEN2)


def test_capped_limits_are_those_of_the_stock_processors() -> None:
    """``cap_pixels_per_frame`` gives each frame a share of the budget, and never less than 1.05 times the minimum."""
    limits = (4096, 25_165_824)
    assert capped_clip_limit(4, factor=32, limits=limits, tokens=768) == 4 * 768 * 32 * 32
    assert capped_clip_limit(100, factor=32, limits=limits, tokens=768) == 25_165_824 // 100 * 100
    assert capped_clip_limit(10_000, factor=32, limits=limits, tokens=768) == int(4096 * 1.05) * 10_000
    limits = (100_352, 602_112)
    options = {"factor": 28, "temporal_factor": 2, "limits": limits, "tokens": 128_000}
    assert capped_frame_limit(15, **options) == 602_112
    assert capped_frame_limit(768, **options) == int(128_000 * 784 * 0.9) * 2 // 768
    assert capped_frame_limit(10_000, **options) == int(100_352 * 1.05)


@pytest.mark.parametrize(
    ("width", "height", "target", "tokens"),
    [
        (854, 480, (528, 288), 66),
        (1920, 1080, (528, 288), 66),
        (100, 100, (384, 384), 64),  # enlarged
        (480, 854, (288, 528), 66),
        (5000, 20, (3360, 48), 70),  # one row of tokens, as many as there may be
        (30, 2000, (48, 3264), 68),
    ],
)
def test_worked_sizes_of_gemma4(width: int, height: int, target: tuple[int, int], tokens: int) -> None:
    """Whole tokens of 48 pixels, 70 of them at most, as a video frame of Gemma 4 has."""
    size = budget_target(Size(height, width), patch_size=16, pooling=3, max_tokens=70)
    assert (size.width, size.height) == target
    grid = patch_grid(1, size, patch_size=16, temporal_patch_size=1)
    assert grid.tokens(3) == tokens


def test_gemma4_refuses_an_empty_frame() -> None:
    """With its size."""
    with pytest.raises(InvalidMedia, match="0x100 pixels has nothing"):
        budget_target(Size(100, 0), patch_size=16, pooling=3, max_tokens=70)
