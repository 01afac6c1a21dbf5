"""The pictures of a film file one by one, with their times: a film stands in for a camera."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import av

from vision_bench.media.container import display_name, open_media
from vision_bench.media.probe import decode_past_damage, probe, require_picture


def pictures(film: Path, *, max_fps: float | None = None) -> Iterator[tuple[float, av.VideoFrame]]:
    """Each picture with its seconds since the first, in the order in which they are shown.

    Args:
        max_fps: pictures that come sooner than this allows are left out; of one at exactly this rate none is.

    Raises:
        InvalidMedia: the file holds no picture stream.
    """
    track = require_picture(probe(film))
    first: float | None = None
    due = 0.0
    with open_media(film, name=display_name(film)) as container:
        for frame in decode_past_damage(container, container.streams[track.index]):
            if frame.time is None:
                continue
            first = frame.time if first is None else first
            seconds = frame.time - first
            # Half a step of tolerance, for the times of files are rounded.
            if max_fps is not None and seconds < due - 0.5 / max_fps:
                continue
            due = max(due + (1 / max_fps if max_fps else 0.0), seconds)
            yield seconds, frame
