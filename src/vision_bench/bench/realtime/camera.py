"""Camera scripts made from a pattern: which keys are down in each latent frame of a rollout."""

from __future__ import annotations

from vision_bench.wire.realtime.rollout import FRAMES_PER_BLOCK

CAMERA_PATTERNS = ("forward", "orbit", "hold")
_ORBIT_KEYS = ("w", "a", "s", "d")


def camera_actions_for_chunk(pattern: str, chunk_index: int) -> list[list[str]]:
    """The three action lists of one chunk: ``forward`` keeps w down, ``hold`` presses nothing, ``orbit`` goes w a s d.

    What the camera does changes the picture and not the cost of a chunk: a pattern keeps a rollout representative.

    Raises:
        ValueError: a negative index, or a pattern that is not in :data:`CAMERA_PATTERNS`.
    """
    if chunk_index < 0:
        raise ValueError(f"chunk_index is {chunk_index}; chunks are counted from 0.")
    match pattern:
        case "forward":
            keys = ["w"]
        case "hold":
            keys = []
        case "orbit":
            keys = [_ORBIT_KEYS[chunk_index % len(_ORBIT_KEYS)]]
        case _:
            raise ValueError(f"Camera pattern {pattern!r} does not exist; choose one of {', '.join(CAMERA_PATTERNS)}.")
    return [list(keys) for _ in range(FRAMES_PER_BLOCK)]


def build_camera_script(num_chunks: int, pattern: str) -> list[list[list[str]]]:
    """The ``camera_action_script`` of a whole rollout: one entry a chunk.

    Raises:
        ValueError: fewer than one chunk, or an unknown pattern.
    """
    if num_chunks < 1:
        raise ValueError(f"num_chunks is {num_chunks}; a rollout has at least 1 chunk.")
    return [camera_actions_for_chunk(pattern, index) for index in range(num_chunks)]
