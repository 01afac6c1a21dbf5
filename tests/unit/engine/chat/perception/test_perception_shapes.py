"""Counting drawn shapes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.engine.chat.perception.pictures import COLOURS, HEIGHT, WIDTH, scenery, titled, with_shapes

from vision_bench.engine.chat.perception.shapes import ShapeCount, agree, count_shapes, most_at_once, most_of_a_colour


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("outline", ["circle", "square", "triangle"])
def test_every_colour_and_outline_is_named_and_counted(colour: str, outline: str) -> None:
    """Three of each on grey scenery are three of that colour and outline."""
    found = count_shapes(with_shapes(scenery(4), outline, colour, 3))
    assert found == (ShapeCount(colour, outline, 3),)  # type: ignore[arg-type]


def test_large_frames_are_counted_the_same() -> None:
    """The same picture four times as large holds the same shapes."""
    small = with_shapes(scenery(4), "triangle", "green", 4)
    assert count_shapes(np.kron(small, np.ones((4, 4, 1), np.uint8))) == count_shapes(small)


def test_grey_pictures_and_titles_hold_no_shapes() -> None:
    """Neither clouds nor letters nor a title's bar are shapes."""
    assert count_shapes(titled(scenery(4), "WHITE 100", pixels=28)) == ()


def test_a_shaded_ball_is_not_a_drawn_disc() -> None:
    """Things in photographs have light and shade; what is counted is flat."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    ball = ((x - 160) ** 2 + (y - 90) ** 2) < 20**2
    picture = scenery(4).copy()
    picture[ball, 0] = np.clip(90 + 4 * (x[ball] - 140), 90, 255)
    picture[ball, 1:] = 10
    assert count_shapes(picture) == ()


def test_a_long_bar_and_a_speck_are_none() -> None:
    """A red bar is no square, and five pixels are nothing."""
    picture = scenery(4).copy()
    picture[20:30, 40:200] = COLOURS["red"]
    picture[120:125, 60:65] = COLOURS["blue"]
    assert count_shapes(picture) == ()


def test_frames_agree_on_the_usual_count() -> None:
    """Three in most frames and two where one is hidden are three; what one frame in four shows is left out."""
    three, two = (ShapeCount("red", "circle", 3),), (ShapeCount("red", "circle", 2),)
    stray = (ShapeCount("red", "circle", 3), ShapeCount("blue", "square", 1))
    assert agree([three, two, three, stray]) == three
    assert agree([three, two]) == three
    assert agree([]) == ()


def test_scenes_are_merged_by_the_greatest() -> None:
    """By colour and outline, and by colour alone, where outlines of one scene add up."""
    first = (ShapeCount("red", "circle", 3), ShapeCount("red", "square", 2))
    second = (ShapeCount("red", "circle", 4),)
    assert most_at_once([first, second]) == (ShapeCount("red", "circle", 4), ShapeCount("red", "square", 2))
    assert most_of_a_colour([first, second]) == {"red": 5}
