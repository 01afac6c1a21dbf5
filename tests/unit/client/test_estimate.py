"""client.estimate: tokens by the rule that vLLM 0.32 was seen to follow."""

from __future__ import annotations

import pytest

from vision_bench.client.estimate import STEP_TOKENS, step_tokens


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (320, 240, 140),  # counted by vLLM: 840 tokens for 12 frames, six pairs
        (640, 360, 220),
        (240, 320, 140),
    ],
)
def test_a_pair_of_frames_costs_what_the_server_counted(width: int, height: int, tokens: int) -> None:
    """Scaled up to the lower bound where the picture is small; upright or on its side alike."""
    assert step_tokens(width, height) == tokens


@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080), (3840, 2160), (64, 64), (2, 2000)])
def test_a_pair_stays_within_its_bounds(size: tuple[int, int]) -> None:
    """Never above 768, never under 128, whatever the size."""
    low, high = STEP_TOKENS
    assert low <= step_tokens(*size) <= high
