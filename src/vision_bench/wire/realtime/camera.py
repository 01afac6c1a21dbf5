"""A camera command as an interaction carries it, and the keys of a camera script. Read as the engine reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vision_bench.wire.shapes import Json

Vector = tuple[float, float, float]
"""+X right, +Y up, +Z forward, from where the session started."""
Quaternion = tuple[float, float, float, float]
"""x, y, z, w, of length 1."""

NO_MOVE: Vector = (0.0, 0.0, 0.0)
NO_TURN: Quaternion = (0.0, 0.0, 0.0, 1.0)
SCRIPT_KEYS = frozenset("wasdijkl")

STEP = 0.05
PITCH_DEGREES = 4.0
YAW_DEGREES = 6.0


@dataclass(frozen=True, slots=True)
class CameraCommand:
    """Go there (``target``), or go on by this much every latent frame (``velocity``)."""

    mode: Literal["target", "velocity"]
    translation: Vector = NO_MOVE
    rotation: Quaternion = NO_TURN


def read_camera(payload: Json) -> CameraCommand:
    """The command in ``multi_modal_data.camera``.

    Raises:
        ValueError: an unknown mode, keys instead of a pose, or numbers that make none. The server finds this after it
            acknowledged the event, and the session ends.
    """
    mode = payload.get("mode", "target")
    if mode not in ("target", "velocity"):
        raise ValueError(f"camera mode must be 'target' or 'velocity', got {mode!r}")
    data = payload.get("data", {})
    if not isinstance(data, dict):
        raise ValueError("camera data must be an object")
    if "actions" in data:
        raise ValueError("camera data.actions is not supported; send translation and rotation")
    x, y, z = _numbers("translation", data.get("translation", NO_MOVE), 3)
    turn = _numbers("rotation", data.get("rotation", NO_TURN), 4)
    # hypot of what is scaled: numbers near the end of the range must not overflow to infinity.
    largest = max(map(abs, turn))
    if largest == 0:
        raise ValueError("camera rotation must not be the zero quaternion")
    scaled = [part / largest for part in turn]
    length = math.hypot(*scaled)
    qx, qy, qz, qw = (part / length for part in scaled)
    return CameraCommand("velocity" if mode == "velocity" else "target", (x, y, z), (qx, qy, qz, qw))


def command_for_keys(keys: Sequence[str]) -> CameraCommand:
    """What held keys do in one latent frame: w s go forward and back, d a aside; i k look up and down, l j aside.

    Capitals count as small letters, a key named twice once, opposite keys cancel out.

    Raises:
        ValueError: a key that is none of them.
    """
    held = {key.lower() for key in keys}
    unknown = sorted(held - SCRIPT_KEYS)
    if unknown:
        raise ValueError(f"Unknown camera action {unknown[0]!r}; the keys are {' '.join(sorted(SCRIPT_KEYS))}")

    def axis(plus: str, minus: str) -> int:
        return (plus in held) - (minus in held)

    # With Z forward and Y up a turn about +X by a positive angle looks down.
    pitch = math.radians(PITCH_DEGREES * axis("k", "i")) / 2
    yaw = math.radians(YAW_DEGREES * axis("l", "j")) / 2
    # Yaw about +Y, then pitch about the camera's own +X.
    rotation = (
        math.cos(yaw) * math.sin(pitch),
        math.sin(yaw) * math.cos(pitch),
        -math.sin(yaw) * math.sin(pitch),
        math.cos(yaw) * math.cos(pitch),
    )
    return CameraCommand("velocity", (STEP * axis("d", "a"), 0.0, STEP * axis("w", "s")), rotation)


def _numbers(name: str, values: Any, count: int) -> list[float]:
    is_list = isinstance(values, Sequence) and not isinstance(values, (str, bytes))
    if not is_list or len(values) != count:
        raise ValueError(f"camera {name} must be a list of {count} numbers")
    found = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"camera {name} must hold numbers, got {value!r}")
        try:
            part = float(value)
        except OverflowError:
            part = math.inf
        if not math.isfinite(part):
            raise ValueError(f"camera {name} must be finite, got {value!r}")
        found.append(part)
    return found
