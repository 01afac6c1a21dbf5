"""Prompt tokens as Qwen3-Omni counts them in vLLM: from sizes, rates and durations, without decoding a picture.

Checked against a served checkpoint: a 6 s clip of 320x240 gives 280, 420, 840 and 1680 video tokens at 0.5, 1, 2 and
4 frames a second; 2 s of sound give 26. Text is only estimated: no tokenizer is on board.
"""

from __future__ import annotations

import math
from typing import NamedTuple

PATCH = 32
"""Pixels on a side of one visual token: patch size 16, two by two merged."""

FRAMES_PER_STEP = 2
"""Frames that the vision encoder folds into one step."""

VIDEO_MIN_PIXELS = 128 * PATCH * PATCH
VIDEO_MAX_PIXELS = 768 * PATCH * PATCH
IMAGE_MIN_PIXELS = 4 * 28 * 28
IMAGE_MAX_PIXELS = 16384 * 28 * 28
AUDIO_TOKENS_PER_SECOND = 13
SOUND_IN_VIDEO_MARKERS = 3
"""Tokens around the sound inside a video's span: 921 for 840 of picture and 78 of sound."""

TEMPLATE_TOKENS = 12
"""What the chat template adds around one user turn."""


class Size(NamedTuple):
    """Pixels."""

    height: int
    width: int


def smart_size(size: Size, *, min_pixels: int, max_pixels: int) -> Size:
    """The size a picture is scaled to: sides multiples of 32, area between the bounds, proportions roughly kept.

    The upper bound wins where they contradict each other.
    """
    height = max(PATCH, round(size.height / PATCH) * PATCH)
    width = max(PATCH, round(size.width / PATCH) * PATCH)
    if height * width > max_pixels:
        scale = math.sqrt(size.height * size.width / max_pixels)
        height = max(PATCH, math.floor(size.height / scale / PATCH) * PATCH)
        width = max(PATCH, math.floor(size.width / scale / PATCH) * PATCH)
    elif height * width < min_pixels:
        scale = math.sqrt(min_pixels / (size.height * size.width))
        height = math.ceil(size.height * scale / PATCH) * PATCH
        width = math.ceil(size.width * scale / PATCH) * PATCH
    return Size(height, width)


def video_tokens(frame_count: int, size: Size, *, max_pixels: int | None = None) -> int:
    """Tokens of ``frame_count`` sampled frames; an odd last frame is doubled."""
    limit = max_pixels if max_pixels is not None and max_pixels > 0 else VIDEO_MAX_PIXELS
    scaled = smart_size(size, min_pixels=min(VIDEO_MIN_PIXELS, limit), max_pixels=limit)
    steps = math.ceil(frame_count / FRAMES_PER_STEP)
    return steps * (scaled.height // PATCH) * (scaled.width // PATCH)


def image_tokens(size: Size, *, max_pixels: int | None = None) -> int:
    """Tokens of one picture."""
    limit = max_pixels if max_pixels is not None and max_pixels > 0 else IMAGE_MAX_PIXELS
    scaled = smart_size(size, min_pixels=min(IMAGE_MIN_PIXELS, limit), max_pixels=limit)
    return (scaled.height // PATCH) * (scaled.width // PATCH)


def audio_tokens(duration_seconds: float) -> int:
    """Tokens of a stretch of sound: 100 mel frames a second, 13 tokens a second, three halvings for the rest."""
    mel_frames = int(duration_seconds * 100 + 1e-6)
    whole, rest = divmod(mel_frames, 100)
    halved = (rest - 1) // 2 + 1
    tail = ((halved - 1) // 2 + 1 - 1) // 2 + 1
    return whole * AUDIO_TOKENS_PER_SECOND + tail


def text_tokens(text: str) -> int:
    """An estimate: four ASCII characters a token, two letters of any other script a token."""
    ascii_count = sum(1 for char in text if char.isascii())
    return math.ceil(ascii_count / 4) + math.ceil((len(text) - ascii_count) / 2)
