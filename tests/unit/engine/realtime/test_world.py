"""engine.realtime.world: what each movement does to the picture."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from vision_bench.engine.realtime.picture import Planes, planes
from vision_bench.engine.realtime.pose import ORIGIN, Pose, moved
from vision_bench.engine.realtime.world import World
from vision_bench.wire.realtime.camera import CameraCommand, command_for_keys

WIDTH, HEIGHT = 160, 96


def scene() -> Planes:
    """Soft blobs: every part looks different, and near parts alike enough to be followed."""
    cells = np.random.default_rng(11).integers(0, 256, (7, 11, 3), dtype=np.uint8)
    return planes(Image.fromarray(cells).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))


def after(*keys: str, frames: int = 1) -> NDArray[np.int32]:
    """Brightness after so many latent frames of the held keys."""
    world, pose = World(scene()), ORIGIN
    for _ in range(frames):
        pose = moved(pose, command_for_keys(keys))
        world.move(pose)
    return world.picture().luma.astype(np.int32)


def shift(before: NDArray[np.int32], now: NDArray[np.int32], axis: int) -> int:
    """Pixels by which the middle of the picture has moved along ``axis``: the shift that fits best."""
    reach = 20
    middle = before[reach:-reach, reach:-reach]

    def misfit(pixels: int) -> float:
        found = np.roll(now, -pixels, axis=axis)[reach:-reach, reach:-reach]
        return float(abs(found - middle).mean())

    return min(range(-reach, reach + 1), key=misfit)


def test_the_first_picture_is_the_one_that_was_given() -> None:
    """Bit for bit, in brightness and colour."""
    given = scene()
    seen = World(given).picture()
    for name in ("luma", "blue", "red"):
        assert (getattr(seen, name) == getattr(given, name)).all()


def test_holding_still_changes_nothing() -> None:
    """No key, any number of frames: bit for bit the same."""
    assert (after(frames=30) == scene().luma).all()


@pytest.mark.parametrize(
    ("key", "axis", "direction"),
    [("d", 1, -1), ("a", 1, 1), ("l", 1, -1), ("j", 1, 1), ("i", 0, 1), ("k", 0, -1)],
)
def test_steps_aside_and_turns_move_the_picture_the_other_way(key: str, axis: int, direction: int) -> None:
    """To the right: what is seen moves left. Up: it moves down."""
    still, now = after(), after(key)
    moved_by = shift(still, now, axis)
    assert moved_by * direction > 0
    assert shift(still, np.roll(now, -moved_by, axis=axis), 1 - axis) == 0


def test_a_turn_is_more_than_a_step() -> None:
    """Six degrees move the picture further than a step of 0.05."""
    still = after()
    assert abs(shift(still, after("l"), 1)) > abs(shift(still, after("d"), 1))


@pytest.mark.parametrize(("key", "is_larger"), [("w", True), ("s", False)])
def test_going_ahead_makes_things_larger_and_going_back_smaller(key: str, is_larger: bool) -> None:
    """The left half moves to the left and the right half to the right, or both inwards."""
    still, now = after(), after(key, frames=4)
    half = WIDTH // 2
    left, right = shift(still[:, :half], now[:, :half], 1), shift(still[:, half:], now[:, half:], 1)
    assert (left < 0 < right) if is_larger else (right < 0 < left)


@pytest.mark.parametrize(("there", "back"), [("w", "s"), ("d", "a"), ("l", "j"), ("i", "k")])
def test_the_way_back_leads_back(there: str, back: str) -> None:
    """After as many frames of the opposite key the first picture is there again, but for rounding."""
    world, pose = World(scene()), ORIGIN
    for key in [there] * 50 + [back] * 50:
        pose = moved(pose, command_for_keys([key]))
        world.move(pose)
    assert abs(world.picture().luma.astype(int) - scene().luma).mean() < 3


def test_a_full_turn_comes_round() -> None:
    """Sixty times six degrees: the first picture again, but for rounding."""
    assert abs(after("l", frames=60) - scene().luma).mean() < 3


def test_every_frame_of_a_long_way_looks_new() -> None:
    """Two hundred frames ahead, through five walls: each picture differs from the one before, and by little."""
    world, pose = World(scene()), ORIGIN
    before = world.picture().luma.astype(int)
    for _ in range(200):
        pose = moved(pose, command_for_keys(["w"]))
        world.move(pose)
        now = world.picture().luma.astype(int)
        assert 0 < abs(now - before).mean() < 25
        before = now


def test_a_roll_turns_the_picture() -> None:
    """Half a turn about the line of sight: upside down."""
    world = World(scene())
    world.move(Pose((0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)))
    assert abs(world.picture().luma[::-1, ::-1].astype(int) - scene().luma).mean() < 3


@pytest.mark.parametrize("size", [1e12, 1e200, 1.7e308])
def test_a_step_of_any_size_has_a_picture(size: float) -> None:
    """Also when its sums run out of the range of numbers."""
    world, pose = World(scene()), ORIGIN
    command = CameraCommand("velocity", (size, -size, size), (0.5, 0.5, 0.5, 0.5))
    for _ in range(5):
        pose = moved(pose, command)
        world.move(pose)
        assert world.picture().luma.shape == (HEIGHT, WIDTH)
    assert math.isfinite(float(world.picture().luma.mean()))
