"""Which frames to look at: times and counts in, indices out. Nothing here opens a file."""

from __future__ import annotations

import math

from vision_bench.errors import InvalidMedia, InvalidRequest

_TIME_TOLERANCE_SECONDS = 1e-6
"""Container clocks are rational, floats are not: 30 frames at 1/30 s must still count as one second."""


def indices_at_fps(
    frame_count: int, source_fps: float, fps: float, *, minimum: int = 4, maximum: int = 768
) -> list[int]:
    """The frames that a Qwen model served by vLLM looks at: about ``fps`` a second, evenly spread over the whole clip.

    The count is ``frame_count / source_fps * fps`` rounded down, held between ``minimum`` and ``maximum`` and to what
    there is, then rounded down to an even number because the vision encoder takes frames in pairs. An ``fps`` of zero
    or less is no error there, and is none here: it gives ``minimum``.

    Args:
        frame_count: frames in the clip.
        source_fps: the clip's own mean rate, frames a second.
        fps: the rate asked for, frames a second.

    Returns:
        (K,) ascending, distinct indices, the first and the last frame among them; K is even unless the clip has one
        frame alone. Empty for an empty clip.

    Raises:
        InvalidRequest: an ``fps`` that is not a number, or bounds that contradict each other.
        InvalidMedia: a source rate that is not a positive number.
    """
    if math.isnan(fps):
        raise InvalidRequest("fps is not a number; give frames a second, such as 2.0")
    if not 1 <= minimum <= maximum:
        raise InvalidRequest(f"minimum {minimum} and maximum {maximum} frames contradict each other")
    if not (math.isfinite(source_fps) and source_fps > 0):
        raise InvalidMedia(f"the source has a frame rate of {source_fps}; it must be a positive number")
    wanted = frame_count / source_fps * max(fps, 0.0)
    # A six-second clip at 29.97 holds 179.82 frames' worth of time: the tolerance only repairs float division.
    count = maximum if wanted >= maximum else max(minimum, math.floor(wanted + 1e-9))
    count = min(count, frame_count)
    return indices_of_count(frame_count, count - count % 2 if count > 1 else count)


def indices_of_count(frame_count: int, count: int) -> list[int]:
    """``count`` indices evenly spread from the first frame to the last; all of them when there are fewer.

    One frame alone is the first, as in vLLM. A ``count`` of -1 asks for every frame.

    Raises:
        InvalidRequest: a count that is neither positive nor -1 (nor 0 for an empty clip).
    """
    if frame_count <= 0:
        return []
    if count == -1 or count >= frame_count:
        return list(range(frame_count))
    if count < 1:
        raise InvalidRequest(f"{count} frames asked for; ask for one or more, or -1 for all of them")
    if count == 1:
        return [0]
    return [round(i * (frame_count - 1) / (count - 1)) for i in range(count)]
