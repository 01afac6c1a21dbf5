"""Sizes, patch grids and token counts of the Qwen and Gemma vision encoders: integers in, integers out.

The rules are those of transformers (``smart_resize`` and ``get_aspect_ratio_preserving_size``, checked against 5.19).
Every limit is an argument: it differs from checkpoint to checkpoint, and comes from the checkpoint's own file
(:mod:`vision_bench.preprocess.spec`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from vision_bench.errors import InvalidMedia

MAX_ASPECT_RATIO = 200
"""The longer side over the shorter one; the stock processors refuse more."""


class Size(NamedTuple):
    """A frame in pixels."""

    height: int
    width: int


class Grid(NamedTuple):
    """What the encoder calls ``grid_thw``: tubelets in time, patches down, patches across."""

    t: int
    h: int
    w: int

    @property
    def patches(self) -> int:
        """Rows of ``pixel_values``."""
        return self.t * self.h * self.w

    def tokens(self, merge_size: int) -> int:
        """Visual tokens in the prompt: the encoder merges ``merge_size`` x ``merge_size`` patches into one."""
        return self.patches // merge_size**2


def frame_target(size: Size, *, factor: int, min_pixels: int, max_pixels: int) -> Size:
    """The size that one frame gets when the limits are about one frame: images, and videos of Qwen2-VL and 2.5-VL.

    Each side goes to the nearest multiple of ``factor``, a half to the even multiple (Python's ``round``). An area past
    a limit scales both sides by one ratio and rounds towards the inside of the limit.

    Args:
        size: the frame as it is.
        factor: pixels a side of one token: patch size times merge size.
        min_pixels: smallest area wanted, pixels.
        max_pixels: largest area wanted, pixels. One token a side remains even where that is more.

    Raises:
        InvalidMedia: an empty frame, or one more than 200 times as long as wide.
    """
    _check_aspect(size.height, size.width, size)
    return _fit(size.height, size.width, area_frames=1, rounded_frames=1, limits=(factor, min_pixels, max_pixels))


def clip_target(
    frames: int, size: Size, *, factor: int, temporal_factor: int, min_pixels: int, max_pixels: int
) -> Size:
    """The size that every frame gets when the limits are about the whole clip: videos of Qwen3-VL.

    As :func:`frame_target` with two differences. The area is that of all frames together, where their number counts
    rounded to a multiple of ``temporal_factor``, half to even: 13 frames are sized as 12 and padded to 14. A frame
    smaller than one token is first enlarged until both sides have one.

    Args:
        frames: frames in the clip.
        size: each of them as it is.
        factor: pixels a side of one token.
        temporal_factor: frames in a tubelet.
        min_pixels: smallest volume wanted, pixels times frames.
        max_pixels: largest volume wanted, pixels times frames.

    Raises:
        InvalidMedia: fewer frames than one tubelet has, an empty frame, or one more than 200 times as long as wide.
    """
    if frames < temporal_factor:
        raise InvalidMedia(f"the clip has {frames} frame(s); this processor takes {temporal_factor} or more")
    height, width = size
    if min(height, width) > 0 and (height < factor or width < factor):
        scale = max(factor / height, factor / width)
        height, width = int(height * scale), int(width * scale)
    _check_aspect(height, width, size)
    rounded = round(frames / temporal_factor) * temporal_factor
    return _fit(height, width, area_frames=frames, rounded_frames=rounded, limits=(factor, min_pixels, max_pixels))


def budget_target(size: Size, *, patch_size: int, pooling: int, max_tokens: int) -> Size:
    """The size that a frame or image gets under Gemma 4: as large as its tokens allow, enlarged where it is small.

    Both sides are rounded down to whole tokens, and a side that would vanish keeps one.

    Args:
        size: the frame as it is.
        patch_size: pixels a side of one patch.
        pooling: patches a side of one token.
        max_tokens: tokens that a frame may cost; the checkpoint's ``max_soft_tokens``.

    Raises:
        InvalidMedia: an empty frame, or one so long that not even a row of tokens is left of it.
    """
    height, width = size
    if min(size) <= 0:
        raise InvalidMedia(f"a frame of {width}x{height} pixels has nothing in it")
    token = patch_size * pooling
    scale = math.sqrt(max_tokens * pooling**2 * patch_size**2 / (height * width))
    down, across = math.floor(scale * height / token), math.floor(scale * width / token)
    if down == 0:
        down, across = 1, min(width // height, max_tokens)
    elif across == 0:
        down, across = min(height // width, max_tokens), 1
    if down * across > max_tokens:
        raise InvalidMedia(f"a frame of {width}x{height} pixels does not fit {max_tokens} tokens; crop it first")
    return Size(down * token, across * token)


def capped_frame_limit(frames: int, *, factor: int, temporal_factor: int, limits: tuple[int, int], tokens: int) -> int:
    """``max_pixels`` for :func:`frame_target` under Qwen2-VL's ``cap_pixels_per_frame``: a share of the whole video.

    Args:
        frames: frames in the clip.
        factor: pixels a side of one token.
        temporal_factor: frames in a tubelet.
        limits: ``min_pixels`` and ``max_pixels`` of the checkpoint.
        tokens: ``max_video_tokens`` of the checkpoint; 90 % of them are shared out.
    """
    total_pixels = int(tokens * factor * factor * 0.9)
    return max(min(limits[1], total_pixels * temporal_factor // frames), int(limits[0] * 1.05))


def capped_clip_limit(frames: int, *, factor: int, limits: tuple[int, int], tokens: int) -> int:
    """``max_pixels`` for :func:`clip_target` under Qwen3-VL's ``cap_pixels_per_frame``: ``tokens`` a frame at most.

    Args:
        frames: frames in the clip.
        factor: pixels a side of one token.
        limits: ``min_pixels`` and ``max_pixels`` of the checkpoint.
        tokens: ``max_video_tokens`` of the checkpoint, a frame.
    """
    return max(min(tokens * factor * factor, limits[1] // frames), int(limits[0] * 1.05)) * frames


def patch_grid(frames: int, size: Size, *, patch_size: int, temporal_patch_size: int) -> Grid:
    """The grid of a clip whose frames already have their target size; an odd frame out is repeated, so it counts."""
    return Grid(-(-frames // temporal_patch_size), size.height // patch_size, size.width // patch_size)


def _check_aspect(height: int, width: int, given: Size) -> None:
    if min(height, width) <= 0:
        raise InvalidMedia(f"a frame of {given.width}x{given.height} pixels has nothing in it")
    if max(height, width) / min(height, width) > MAX_ASPECT_RATIO:
        raise InvalidMedia(
            f"a frame of {given.width}x{given.height} pixels is more than {MAX_ASPECT_RATIO} times as long as wide; "
            "crop it first"
        )


def _fit(height: int, width: int, *, area_frames: int, rounded_frames: int, limits: tuple[int, int, int]) -> Size:
    """Round to whole tokens, then hold the area (times frames) between its limits."""
    factor, min_pixels, max_pixels = limits
    h, w = round(height / factor) * factor, round(width / factor) * factor
    if rounded_frames * h * w > max_pixels:
        beta = math.sqrt((area_frames * height * width) / max_pixels)
        h = max(factor, math.floor(height / beta / factor) * factor)
        w = max(factor, math.floor(width / beta / factor) * factor)
    elif rounded_frames * h * w < min_pixels:
        beta = math.sqrt(min_pixels / (area_frames * height * width))
        h = math.ceil(height * beta / factor) * factor
        w = math.ceil(width * beta / factor) * factor
    return Size(h, w)
