"""Visual and audio tokens against what a served Qwen3-Omni reported."""

from __future__ import annotations

import pytest

from vision_bench.engine.chat.tokens import Size, audio_tokens, image_tokens, smart_size, text_tokens, video_tokens
from vision_bench.media.sampling import indices_at_fps


@pytest.mark.parametrize(("fps", "tokens"), [(-1.0, 280), (0.0, 280), (0.5, 280), (1.0, 420), (2.0, 840), (4.0, 1680)])
def test_six_seconds_of_320x240_at_each_rate(fps: float, tokens: int) -> None:
    """vLLM 0.32 reported these for a 6 s clip at 25 frames a second."""
    assert video_tokens(len(indices_at_fps(150, 25.0, fps)), Size(240, 320)) == tokens


def test_small_pictures_are_scaled_up_to_128_tokens() -> None:
    """320x240 would be 80 tokens of 32x32; it becomes 14 x 10."""
    scaled = smart_size(Size(240, 320), min_pixels=128 * 1024, max_pixels=768 * 1024)
    assert scaled == Size(320, 448)


def test_720p_is_scaled_down_under_768_tokens() -> None:
    """1280x720 becomes 1152x640: 720 tokens a pair."""
    assert video_tokens(2, Size(720, 1280)) == 720


def test_max_pixels_beats_the_lower_bound() -> None:
    """max_pixels 16384 gave 72 tokens for 12 frames: 4 x 3 a pair."""
    assert video_tokens(12, Size(240, 320), max_pixels=16384) == 72


def test_odd_last_frame_counts_as_a_pair() -> None:
    """Five frames are three steps."""
    assert video_tokens(5, Size(240, 320)) == 3 * 140


def test_image_keeps_its_size_within_wide_bounds() -> None:
    """Pictures have bounds of their own: 320x240 stays 10 x 8."""
    assert image_tokens(Size(240, 320)) == 80


@pytest.mark.parametrize(("seconds", "tokens"), [(0.0, 0), (1.0, 13), (2.0, 26), (6.0, 78), (0.5, 7), (6.01, 79)])
def test_sound_makes_thirteen_tokens_a_second(seconds: float, tokens: int) -> None:
    """2 s of WAV gave 26, the 6 s of a clip 78; a rest is halved three times, rounded up."""
    assert audio_tokens(seconds) == tokens


def test_hangul_weighs_more_than_ascii() -> None:
    """The estimate: four ASCII characters a token, two of other scripts."""
    assert text_tokens("") == 0
    assert text_tokens("describe") == 2
    assert text_tokens("무엇이") == 2
