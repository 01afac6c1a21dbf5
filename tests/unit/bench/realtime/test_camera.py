"""bench.realtime.camera: what the vectors leave open."""

from __future__ import annotations

import pytest

from vision_bench.bench.realtime.camera import build_camera_script, camera_actions_for_chunk


def test_no_pattern_shares_its_lists() -> None:
    """Changing one latent frame's keys changes no other."""
    script = build_camera_script(2, "forward")
    script[0][0].append("a")
    assert script == [[["w", "a"], ["w"], ["w"]], [["w"], ["w"], ["w"]]]


def test_an_unknown_pattern_names_those_that_exist() -> None:
    """The message holds the value and the remedy."""
    with pytest.raises(ValueError, match=r"'spiral'.*forward, orbit, hold"):
        camera_actions_for_chunk("spiral", 0)


def test_no_chunk_comes_before_the_first() -> None:
    """A negative index is refused whatever the pattern."""
    with pytest.raises(ValueError, match="-1"):
        camera_actions_for_chunk("hold", -1)
