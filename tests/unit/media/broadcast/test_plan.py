"""The programme before anything is drawn."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from tests.unit.media.broadcast.rig import hangul_font, hummed

from vision_bench.errors import InvalidRequest
from vision_bench.media.broadcast.genres import GENRES
from vision_bench.media.broadcast.plan import frame_at, plan_programme
from vision_bench.media.broadcast.shapes import positions


def test_a_cut_begins_with_the_first_frame_at_or_after_its_time() -> None:
    """At 30000/1001 the frame at 600 s is 17983 (600.03 s): 17982 is shown 0.6 ms too early."""
    assert frame_at(600, Fraction(30000, 1001)) == 17983
    assert frame_at(6, Fraction(30)) == 180


def test_scenes_follow_each_other_from_the_lead_to_the_end() -> None:
    """No frame of the programme is without a scene, and none has two."""
    programme = hummed("baseball", lead=600)
    edges = [programme.lead_frames, *(scene.end_frame for scene in programme.scenes)]
    assert [scene.first_frame for scene in programme.scenes] == edges[:-1]
    assert edges[-1] == programme.frames == frame_at(672, programme.genre.fps)


def test_a_minute_shows_every_kind_of_passage() -> None:
    """Normal, frozen, black, silent, and black and silent at once."""
    kinds = {scene.kind for scene in hummed("baseball").scenes}
    assert kinds == {"normal", "frozen", "black", "silent", "black_silent"}


def test_every_fourth_cut_falls_on_a_windows_edge() -> None:
    """The scene with number 1, 5, … ends with the frame that begins a window; the lead does not move that."""
    programme = hummed("baseball", lead=600)
    edges = {frame_at(600 + 6 * number, programme.genre.fps) for number in range(13)}
    ends = [scene.end_frame for scene in programme.scenes if scene.number % 4 == 1]
    assert ends
    assert set(ends) <= edges


def test_passages_keep_what_they_promise() -> None:
    """Nothing is said or beeped in silence, drawn or flashed in black, or moved in a still."""
    for scene in hummed("baseball", seconds=144).scenes:
        if scene.is_silent:
            assert not scene.lines
            assert not any(mark.beep for mark in scene.marks)
        if scene.is_black:
            assert not scene.titles
            assert not scene.groups
        if scene.is_black or scene.kind == "frozen":
            assert not any(mark.flash for mark in scene.marks)
            assert scene.pan == 0
        else:
            assert scene.pan != 0
        if scene.kind == "frozen":
            assert {(title.first_frame, title.end_frame) for title in scene.titles} == {
                (scene.first_frame, scene.end_frame)
            }


def test_marks_keep_apart() -> None:
    """Two marks are at least 0.8 s apart within a scene and 0.6 s from its edges, so that no pair can be mistaken."""
    programme = hummed("baseball", seconds=144)
    fps = float(programme.genre.fps)
    for scene in programme.scenes:
        frames = [mark.frame for mark in scene.marks]
        assert all(later - earlier >= 0.8 * fps - 1 for earlier, later in pairwise(frames))
        assert all(scene.first_frame + 0.6 * fps <= frame <= scene.end_frame - 0.6 * fps + 1 for frame in frames)


def test_lines_end_before_their_scene_does() -> None:
    """A sentence that would not fit is not begun."""
    programme = hummed("drama", seconds=144)
    lines = [(line, scene) for scene in programme.scenes for line in scene.lines]
    assert lines
    for line, scene in lines:
        assert line.start_seconds >= scene.first_frame / programme.genre.fps
        assert line.end_seconds <= scene.end_frame / programme.genre.fps


@pytest.mark.parametrize("genre", GENRES)
def test_shapes_and_titles_never_meet(genre: str) -> None:
    """At every tenth of a scene all shapes lie inside the picture, apart from each other and from every title."""
    programme = hummed(genre, seconds=144)
    for scene in programme.scenes:
        for tenth in range(11):
            boxes = [
                (x, y, group.side, group.side)
                for group in scene.groups
                for x, y in positions(group, programme.genre, tenth / 10)
            ]
            assert all(x >= 0 and x + side <= programme.genre.width for x, _, side, _ in boxes)
            boxes += [tuple(title.box) for title in scene.titles]
            assert not any(_overlap(a, b) for number, a in enumerate(boxes) for b in boxes[:number])


def _overlap(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def test_without_a_speaker_nobody_speaks() -> None:
    """The programme is planned all the same, and says so by having no speaker."""
    programme = plan_programme(GENRES["drama"], seconds=24, speaker=None, fonts=hangul_font())
    assert programme.speaker is None
    assert not any(scene.lines for scene in programme.scenes)


@pytest.mark.parametrize(("seconds", "lead"), [(0, 0), (-1, 0), (float("nan"), 0), (float("inf"), 0), (6, -1)])
def test_lengths_that_cannot_be_are_refused(seconds: float, lead: float) -> None:
    """The message names the option and its value."""
    with pytest.raises(InvalidRequest, match="--seconds"):
        hummed("drama", seconds=seconds, lead=lead)
