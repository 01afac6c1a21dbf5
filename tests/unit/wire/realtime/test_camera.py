"""wire.realtime.camera: poses and keys, and what is neither."""

from __future__ import annotations

import math
from typing import Any

import pytest

from vision_bench.wire.realtime.camera import NO_TURN, CameraCommand, command_for_keys, read_camera


def test_nothing_given_is_the_target_where_the_session_started() -> None:
    """Zero vector, identity, mode target."""
    assert read_camera({}) == CameraCommand("target", (0.0, 0.0, 0.0), NO_TURN)


def test_a_quaternion_is_normalised() -> None:
    """Its length says nothing, however long."""
    for length in (2.0, 1e-200, 1e300):
        command = read_camera({"mode": "velocity", "data": {"rotation": [0, length, 0, length]}})
        assert command.rotation == pytest.approx((0, math.sqrt(0.5), 0, math.sqrt(0.5)))


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ({"mode": "orbit"}, "'orbit'"),
        ({"mode": None}, "None"),
        ({"data": []}, "data must be an object"),
        ({"data": {"actions": ["w"]}}, "actions is not supported"),
        ({"data": {"translation": [0, 0]}}, "translation must be a list of 3"),
        ({"data": {"translation": "abc"}}, "translation must be a list of 3"),
        ({"data": {"translation": [0, 0, "1"]}}, "translation must hold numbers"),
        ({"data": {"translation": [0, 0, True]}}, "translation must hold numbers"),
        ({"data": {"translation": [0, 0, float("nan")]}}, "translation must be finite"),
        ({"data": {"translation": [0, 0, 10**400]}}, "translation must be finite"),
        ({"data": {"rotation": [0, 0, 0, float("inf")]}}, "rotation must be finite"),
        ({"data": {"rotation": [0, 0, 0, 0]}}, "zero quaternion"),
        ({"data": {"rotation": None}}, "rotation must be a list of 4"),
    ],
)
def test_what_is_no_pose_is_refused(payload: dict[str, Any], says: str) -> None:
    """By the part that is wrong."""
    with pytest.raises(ValueError, match=says):
        read_camera(payload)


@pytest.mark.parametrize(
    ("keys", "translation"),
    [
        ([], (0, 0, 0)),
        (["w"], (0, 0, 0.05)),
        (["S"], (0, 0, -0.05)),
        (["d", "w", "w"], (0.05, 0, 0.05)),
        (["a"], (-0.05, 0, 0)),
        (["w", "s"], (0, 0, 0)),
    ],
)
def test_keys_move_by_a_twentieth(keys: list[str], translation: tuple[float, float, float]) -> None:
    """Capitals are small letters, a key counts once, opposites cancel."""
    command = command_for_keys(keys)
    assert (command.mode, command.translation, command.rotation) == ("velocity", translation, pytest.approx(NO_TURN))


def test_keys_turn_by_degrees() -> None:
    """l looks 6 degrees to the right (about +Y), i looks 4 degrees up (about -X), j and k the other way."""
    half = math.radians(3)
    assert command_for_keys(["l"]).rotation == pytest.approx((0, math.sin(half), 0, math.cos(half)))
    assert command_for_keys(["j"]).rotation == pytest.approx((0, -math.sin(half), 0, math.cos(half)))
    assert command_for_keys(["i"]).rotation[0] == pytest.approx(-math.sin(math.radians(2)))
    assert command_for_keys(["k"]).rotation[0] == pytest.approx(math.sin(math.radians(2)))
    assert math.hypot(*command_for_keys(["i", "l"]).rotation) == pytest.approx(1)


def test_a_key_that_does_nothing_is_named() -> None:
    """With those that do."""
    with pytest.raises(ValueError, match=r"'zz'.*a d i j k l s w"):
        command_for_keys(["w", "zz"])
