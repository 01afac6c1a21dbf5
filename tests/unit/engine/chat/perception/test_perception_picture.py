"""What is measured in sampled frames."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.engine.chat.perception.pictures import HEIGHT, WIDTH, clip, scenery, titled, with_shapes

from vision_bench.engine.chat.perception.picture import PictureFacts, look, seconds_of_each
from vision_bench.media.frames import DecodedFrames

BLACK = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
WHITE = np.full((HEIGHT, WIDTH, 3), 250, np.uint8)


def panned(seed: int, count: int, *, step: int = 20, start: int = 0) -> list[np.ndarray]:
    """A camera that moves over one place."""
    return [scenery(seed, shift=start + step * number) for number in range(count)]


def measured(frames: list[np.ndarray], *, seconds: float = 6.0) -> PictureFacts:
    return look(clip(frames, seconds=seconds), duration_seconds=seconds)


def test_a_black_clip_is_black_and_nothing_else() -> None:
    """Six seconds of black: black for six, not frozen, no cut, no brightness, no motion, nothing to read."""
    facts = measured([BLACK] * 12)
    assert facts.is_black and facts.black_seconds == pytest.approx(6.0)
    assert facts.frozen_seconds == 0.0 and facts.cut_seconds == () and facts.worth_reading == ()
    assert facts.brightness is None and facts.motion is None


def test_a_frame_stamp_does_not_light_a_black_picture() -> None:
    """A row of small white blocks, 0.9 % of the picture, leaves it black."""
    stamped = BLACK.copy()
    stamped[-8:-4, 4:134] = 235
    assert measured([stamped] * 4).is_black


def test_a_dark_scene_is_not_black() -> None:
    """A night with a lit window is a picture."""
    night = BLACK.copy() + 12
    night[60:100, 100:160] = 120
    facts = measured([night] * 4)
    assert not facts.is_black and facts.black_seconds == 0.0 and facts.brightness is not None


def test_a_still_is_frozen() -> None:
    """One picture for six seconds is frozen for six; noise of an encoder does not move it."""
    rng = np.random.default_rng(3)
    still = scenery(1)
    noisy = [np.clip(still.astype(int) + rng.integers(-3, 4, still.shape), 0, 255).astype(np.uint8) for _ in range(12)]
    facts = measured(noisy)
    assert facts.frozen_seconds == pytest.approx(6.0)
    assert facts.motion is not None and facts.motion < 0.006


def test_a_pan_is_neither_frozen_nor_a_cut() -> None:
    """A camera that crosses a sixteenth of the picture each half second stays in its scene."""
    facts = measured(panned(1, 12))
    assert facts.cut_seconds == () and facts.frozen_seconds == 0.0
    assert facts.motion is not None and facts.motion > 0.2


def test_a_slow_pan_at_a_high_rate_is_not_frozen() -> None:
    """At 24 frames a second neighbours hardly differ; over 0.4 s they do."""
    facts = measured(panned(1, 48, step=1), seconds=2.0)
    assert facts.frozen_seconds == 0.0


def test_cuts_are_where_the_place_changes() -> None:
    """Three places: two cuts, at the first frame of the second and of the third."""
    facts = measured(panned(1, 4) + panned(2, 4) + panned(3, 4))
    assert facts.cut_seconds == pytest.approx((2.0, 4.0))


def test_a_cut_between_equally_bright_places_is_one() -> None:
    """The second place has the first one's very tones, in other places: a histogram would see no cut."""
    facts = measured([scenery(5)] * 6 + [scenery(5)[::-1]] * 6)
    assert facts.cut_seconds == pytest.approx((3.0,))


def test_black_in_between_is_two_cuts() -> None:
    """Into black and out of it: two changes, and black for as long as its frames stand for."""
    facts = measured(panned(1, 4) + [BLACK] * 4 + panned(1, 4))
    assert facts.cut_seconds == pytest.approx((2.0, 4.0))
    assert facts.black_seconds == pytest.approx(2.0)


def test_a_flash_is_a_flash_and_no_cut() -> None:
    """One white frame within a pan: one flash at its time, no cut, and what is after it belongs to the scene."""
    frames = panned(1, 12)
    frames[5] = WHITE
    facts = measured(frames)
    assert facts.flash_seconds == pytest.approx((2.5,))
    assert facts.cut_seconds == ()


def test_a_flash_of_several_frames_counts_once() -> None:
    """At 24 frames a second a flash of a tenth of a second is two or three frames."""
    frames = panned(1, 48, step=2)
    frames[20:23] = [WHITE] * 3
    facts = measured(frames, seconds=2.0)
    assert len(facts.flash_seconds) == 1 and facts.cut_seconds == ()


def test_a_white_last_frame_is_a_flash() -> None:
    """Nothing after it can tell, but a white picture at the very end is no new place."""
    facts = measured([*panned(1, 11), WHITE])
    assert facts.flash_seconds == pytest.approx((5.5,)) and facts.cut_seconds == ()


def test_a_bright_scene_is_no_flash() -> None:
    """A second of a bright place between two dark ones is two cuts."""
    bright = np.clip(scenery(2).astype(int) + 90, 0, 255).astype(np.uint8)
    facts = measured([*panned(1, 5), bright, bright, *panned(3, 5)])
    assert facts.flash_seconds == () and len(facts.cut_seconds) == 2


def test_a_still_picture_has_no_times() -> None:
    """An image is one frame of no length: brightness and shapes, no seconds, no cut, no flash."""
    facts = look(DecodedFrames(with_shapes(scenery(1), "circle", "red", 2)[None], np.zeros(1)), duration_seconds=0.0)
    assert (facts.black_seconds, facts.frozen_seconds, facts.cut_seconds, facts.flash_seconds) == (0.0, 0.0, (), ())
    assert facts.colour_counts == {"red": 2} and facts.worth_reading == (0,)


def test_the_most_shapes_of_one_scene_count() -> None:
    """Two red circles, then three red squares and a blue one: at most three red at one time."""
    first = [with_shapes(frame, "circle", "red", 2) for frame in panned(1, 6)]
    second = [with_shapes(with_shapes(frame, "square", "red", 3), "square", "blue", 1, y=100) for frame in panned(2, 6)]
    facts = measured(first + second)
    assert facts.colour_counts == {"blue": 1, "red": 3}
    assert {(shape.colour, shape.outline, shape.count) for shape in facts.shapes} == {
        ("red", "circle", 2),
        ("red", "square", 3),
        ("blue", "square", 1),
    }


def test_the_frame_with_a_title_is_worth_reading() -> None:
    """One frame a scene: the one that a title gives more detail."""
    frames = panned(1, 6) + panned(2, 6)
    frames[3] = titled(frames[3], "SCORE 3:2", pixels=24)
    assert measured(frames).worth_reading[0] == 3
    assert len(measured(frames).worth_reading) == 2


def test_frames_share_out_the_whole_length() -> None:
    """Each frame stands for the time around it, the first and last up to the ends."""
    assert seconds_of_each(np.array([0.0, 2.0, 4.0]), 6.0) == pytest.approx([1.0, 2.0, 3.0])
    assert seconds_of_each(np.array([0.0]), 0.0) == [0.0]


def test_a_fade_of_a_plain_picture_is_no_cut() -> None:
    """Grey that brightens by ten levels a step is one scene; a jump by a hundred is another."""
    greys = [np.full((HEIGHT, WIDTH, 3), 60 + 10 * number, np.uint8) for number in range(6)]
    assert measured(greys).cut_seconds == ()
    assert len(measured([greys[0]] * 3 + [greys[0] + 100] * 3).cut_seconds) == 1


@pytest.mark.parametrize("shape", [(16, 16), (1, 100), (100, 1), (1, 1)])
def test_tiny_pictures_are_measured(shape: tuple[int, int]) -> None:
    """Smaller than a block, a line of pixels, one pixel: no error, and nothing made up."""
    facts = measured([np.full((*shape, 3), 90, np.uint8)] * 4)
    assert facts.frozen_seconds == pytest.approx(6.0) and facts.cut_seconds == () and facts.shapes == ()
