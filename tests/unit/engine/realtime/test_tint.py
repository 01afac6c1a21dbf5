"""engine.realtime.tint: a prompt's colour comes by shares and goes with the prompt."""

from __future__ import annotations

import numpy as np
import pytest

from vision_bench.engine.realtime.picture import Planes
from vision_bench.engine.realtime.tint import STRENGTH, PromptTint, tint_of


def grey() -> Planes:
    """Without any colour."""
    colour = np.full((2, 2), 128, np.uint8)
    return Planes(np.full((4, 4), 90, np.uint8), colour, colour.copy())


def colour(tint: PromptTint) -> tuple[int, int]:
    """What it makes of grey: steps from 128, towards blue and towards red."""
    picture = tint.applied(grey())
    assert (picture.luma == 90).all()
    return int(picture.blue[0, 0]) - 128, int(picture.red[0, 0]) - 128


def test_the_first_prompt_has_no_colour() -> None:
    """The very planes come back."""
    tint, picture = PromptTint("street"), grey()
    tint.follow("street", 1.0)
    assert tint.applied(picture) is picture


def test_a_new_prompt_comes_by_shares_and_the_first_one_back() -> None:
    """Half of its colour at half its transition; from there the way to another begins."""
    tint = PromptTint("street")
    whole = tint_of("rain")
    tint.follow("rain", 0.5)
    assert colour(tint) == pytest.approx((whole.blue / 2, whole.red / 2), abs=1)
    tint.follow("rain", 1.0)
    assert colour(tint) == pytest.approx(whole, abs=1)
    tint.follow("street", 0.5)
    assert colour(tint) == pytest.approx((whole.blue / 2, whole.red / 2), abs=1)
    tint.follow("street", 1.0)
    assert colour(tint) == (0, 0)


@pytest.mark.parametrize("prompt", ["rain", "", "비가 온다", "\ud800"])
def test_every_prompt_is_seen(prompt: str) -> None:
    """Whatever its text, its colour is as strong."""
    assert float(np.hypot(*tint_of(prompt))) == pytest.approx(STRENGTH)
