"""Where the camera stands and looks, and how commands move it. Left-handed: +X right, +Y up, +Z forward."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vision_bench.wire.realtime.camera import NO_MOVE, NO_TURN, CameraCommand, Quaternion, Vector
from vision_bench.wire.realtime.rollout import TEMPORAL_COMPRESSION


@dataclass(frozen=True, slots=True)
class Pose:
    """Place and direction against the session's start."""

    position: Vector = NO_MOVE
    rotation: Quaternion = NO_TURN


ORIGIN = Pose()


def moved(pose: Pose, command: CameraCommand) -> Pose:
    """``pose`` after one latent frame of a velocity: a step in the direction in which it looks, then a turn."""
    step = rotate(pose.rotation, command.translation)
    x, y, z = (place + part for place, part in zip(pose.position, step, strict=True))
    return Pose((x, y, z), _unit(product(pose.rotation, command.rotation)))


def between(start: Pose, end: Pose, share: float) -> Pose:
    """The pose that lies ``share`` of the way from one to the other: a straight line, and the shorter turn."""
    x, y, z = (a + (b - a) * share for a, b in zip(start.position, end.position, strict=True))
    return Pose((x, y, z), _slerp(start.rotation, end.rotation, share))


def picture_poses(before: Pose, latent: Sequence[Pose], *, is_first_chunk: bool) -> list[Pose]:
    """The camera at each picture of a chunk: 9 of the first, 12 of every other.

    Args:
        before: the last latent frame's pose of the chunk before; unused in the first chunk.
        latent: (3,) the chunk's poses, one a latent frame.
        is_first_chunk: its first latent frame is a single picture.
    """
    poses: list[Pose] = []
    for index, pose in enumerate(latent):
        if is_first_chunk and index == 0:
            poses.append(pose)
        else:
            steps = range(1, TEMPORAL_COMPRESSION + 1)
            poses += [between(before, pose, step / TEMPORAL_COMPRESSION) for step in steps]
        before = pose
    return poses


def rotate(turn: Quaternion, vector: Vector) -> Vector:
    """``vector`` after ``turn``."""
    x, y, z = vector
    qx, qy, qz, qw = turn
    rx, ry, rz, _ = product(product(turn, (x, y, z, 0.0)), (-qx, -qy, -qz, qw))
    return rx, ry, rz


def product(first: Quaternion, second: Quaternion) -> Quaternion:
    """The turn ``second``, seen from ``first``."""
    ax, ay, az, aw = first
    bx, by, bz, bw = second
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def _slerp(start: Quaternion, end: Quaternion, share: float) -> Quaternion:
    cosine = math.fsum(a * b for a, b in zip(start, end, strict=True))
    if cosine < 0:  # the same turn, the short way round
        cosine = -cosine
        ex, ey, ez, ew = end
        end = (-ex, -ey, -ez, -ew)
    angle = math.acos(min(1.0, cosine))
    if angle < 1e-6:  # too close for a quotient of sines
        first, second = 1 - share, share
    else:
        first, second = math.sin((1 - share) * angle) / math.sin(angle), math.sin(share * angle) / math.sin(angle)
    x, y, z, w = (first * a + second * b for a, b in zip(start, end, strict=True))
    return _unit((x, y, z, w))


def _unit(turn: Quaternion) -> Quaternion:
    length = math.hypot(*turn)
    x, y, z, w = (part / length for part in turn)
    return x, y, z, w
