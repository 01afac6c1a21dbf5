"""The frames of a programme."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.media.broadcast.rig import hummed

from vision_bench.media.broadcast.genres import GENRES
from vision_bench.media.broadcast.picture import Canvas, ScenePainter, yuv
from vision_bench.media.broadcast.plan import Programme, Scene
from vision_bench.media.broadcast.shapes import COLOURS, positions
from vision_bench.media.broadcast.stamp import Stamp, read_stamp


def _scene(programme: Programme, kind: str) -> Scene:
    return next(scene for scene in programme.scenes if scene.kind == kind)


def _painted(programme: Programme, scene: Scene, frame: int) -> Canvas:
    canvas = Canvas(programme.genre)
    ScenePainter(programme, scene).paint(canvas, frame)
    return canvas


def test_a_black_frame_is_black_but_for_the_stamp() -> None:
    """Luma 16 and neutral chroma; the stamp covers under one percent."""
    programme = hummed("baseball")
    scene = _scene(programme, "black")
    canvas = _painted(programme, scene, scene.first_frame + 3)
    assert (canvas.luma != 16).mean() < 0.01
    assert (canvas.chroma == 128).all()
    assert read_stamp(canvas.luma) == Stamp(5, scene.first_frame + 3)


def test_a_frozen_scene_is_one_picture() -> None:
    """Without the stamp its first and last frames are equal, byte for byte; a normal scene's are not."""
    programme = hummed("baseball", stamp=False)
    for kind, is_still in (("frozen", True), ("normal", False)):
        scene = _scene(programme, kind)
        first = _painted(programme, scene, scene.first_frame + 40).buffer
        last = _painted(programme, scene, scene.first_frame + 41).buffer
        assert np.array_equal(first, last) is is_still


def test_a_flash_whitens_the_picture_and_leaves_the_titles() -> None:
    """Most of the frame is white for 0.1 s and not in the frames around it; the score board stays."""
    programme = hummed("baseball")
    scene = next(scene for scene in programme.scenes if any(mark.flash for mark in scene.marks))
    frame = next(mark.frame for mark in scene.marks if mark.flash)
    white = [(_painted(programme, scene, frame + later).luma == 235).mean() > 0.7 for later in range(-1, 4)]
    assert white == [False, True, True, True, False]
    board = next(title for title in scene.titles if title.title.role == "scoreboard")
    x, y, width, height = board.box
    assert np.array_equal(_painted(programme, scene, frame).luma[y : y + height, x : x + width], board.patch)


def test_shapes_have_their_colour_where_they_should_be() -> None:
    """The middle of every shape has the luma and chroma of its colour."""
    programme = hummed("baseball")
    scene = next(scene for scene in programme.scenes if scene.kind == "normal" and scene.groups)
    canvas = _painted(programme, scene, scene.first_frame)
    for group in scene.groups:
        wanted = yuv(COLOURS[group.colour][0], is_hd=False)
        for x, y in positions(group, programme.genre, 0.0):
            row, column = y + group.side * 2 // 3, x + group.side // 2
            assert (canvas.luma[row, column], *canvas.chroma[:, row // 2, column // 2]) == wanted


def test_titles_are_seen_from_their_first_frame_to_their_last() -> None:
    """A title that comes late is not there before, and is gone at its end."""
    programme = hummed("baseball")
    scene = programme.scenes[0]
    late = next(title for title in scene.titles if title.first_frame > scene.first_frame)
    x, y, width, height = late.box
    seen = [
        np.array_equal(_painted(programme, scene, frame).luma[y : y + height, x : x + width], late.patch)
        for frame in (late.first_frame - 1, late.first_frame, late.end_frame - 1, late.end_frame)
    ]
    assert seen == [False, True, True, False]


@pytest.mark.parametrize("is_hd", [True, False])
def test_grey_has_no_chroma_and_white_is_235(is_hd: bool) -> None:
    """Limited range: black 16, white 235, chroma 128, in both matrices."""
    assert yuv((0, 0, 0), is_hd=is_hd) == (16, 128, 128)
    assert yuv((255, 255, 255), is_hd=is_hd) == (235, 128, 128)


def test_red_differs_between_the_matrices() -> None:
    """BT.709 red is darker than BT.601 red: a file tagged wrongly would change colour."""
    assert yuv((255, 0, 0), is_hd=True)[0] < yuv((255, 0, 0), is_hd=False)[0]


def test_same_seed_same_frame() -> None:
    """Two plans of one seed paint the same bytes; another seed paints others."""
    frames = []
    for seed in (7, 7, 8):
        programme = hummed("drama", seconds=6, seed=seed)
        frames.append(_painted(programme, programme.scenes[0], 5).buffer)
    assert np.array_equal(frames[0], frames[1])
    assert not np.array_equal(frames[0], frames[2])
    assert GENRES["drama"].width == frames[0].shape[1]
