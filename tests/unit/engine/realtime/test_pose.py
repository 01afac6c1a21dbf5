"""engine.realtime.pose: steps go where the camera looks, and turns take the short way."""

from __future__ import annotations

import math

import pytest

from vision_bench.engine.realtime.pose import ORIGIN, Pose, between, moved, picture_poses, rotate
from vision_bench.wire.realtime.camera import CameraCommand, command_for_keys

HALF = math.sqrt(0.5)
RIGHT = (0.0, HALF, 0.0, HALF)
"""A quarter turn to the right."""


def test_forward_is_where_the_camera_looks() -> None:
    """Along +Z at first; after a quarter turn to the right along +X."""
    step = CameraCommand("velocity", (0.0, 0.0, 1.0))
    assert moved(ORIGIN, step).position == pytest.approx((0, 0, 1))
    assert moved(Pose((0.0, 0.0, 0.0), RIGHT), step).position == pytest.approx((1, 0, 0))


def test_sixty_yaw_steps_are_a_full_turn() -> None:
    """Six degrees each: the camera looks forward again, with a quaternion still of length 1."""
    pose = ORIGIN
    for _ in range(60):
        pose = moved(pose, command_for_keys(["l"]))
    assert rotate(pose.rotation, (0.0, 0.0, 1.0)) == pytest.approx((0, 0, 1), abs=1e-9)
    assert math.hypot(*pose.rotation) == pytest.approx(1)


def test_a_look_up_raises_the_view() -> None:
    """i turns forward upwards, l turns it to the right."""
    assert rotate(command_for_keys(["i"]).rotation, (0.0, 0.0, 1.0))[1] == pytest.approx(math.sin(math.radians(4)))
    assert rotate(command_for_keys(["l"]).rotation, (0.0, 0.0, 1.0))[0] == pytest.approx(math.sin(math.radians(6)))


def test_halfway_is_half_the_way_and_half_the_turn() -> None:
    """Ends included."""
    end = Pose((2.0, 4.0, -6.0), RIGHT)
    middle = between(ORIGIN, end, 0.5)
    assert middle.position == (1.0, 2.0, -3.0)
    assert middle.rotation == pytest.approx((0, math.sin(math.pi / 8), 0, math.cos(math.pi / 8)))
    assert between(ORIGIN, end, 1.0).rotation == pytest.approx(RIGHT)
    assert between(ORIGIN, ORIGIN, 0.3) == ORIGIN


def test_the_same_turn_written_with_the_other_sign_is_no_way_round() -> None:
    """q and -q are one turn: nothing moves between them."""
    other = Pose(rotation=(0.0, 0.0, 0.0, -1.0))
    assert rotate(between(ORIGIN, other, 0.5).rotation, (0.0, 0.0, 1.0)) == pytest.approx((0, 0, 1))


def test_pictures_lie_between_latent_frames() -> None:
    """The first chunk is its first picture and then quarters of the way; later ones go on from where it stood."""
    latent = [Pose((float(place), 0.0, 0.0)) for place in (4, 8, 12)]
    later = [pose.position[0] for pose in picture_poses(ORIGIN, latent, is_first_chunk=False)]
    assert later == [float(place) for place in range(1, 13)]
    first = [pose.position[0] for pose in picture_poses(ORIGIN, latent, is_first_chunk=True)]
    assert first == [float(place) for place in range(4, 13)]
