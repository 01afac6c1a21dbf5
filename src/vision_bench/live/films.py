"""The pictures of a film file one by one, with their times: a film stands in for a camera."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av

from vision_bench.live.failures import StreamFailure
from vision_bench.media.container import display_name, open_media
from vision_bench.media.probe import decode_past_damage, probe
from vision_bench.media.tracks import require_picture

STILL_SECONDS = 1.0
"""How long the one picture of a film is shown that has no second one to tell."""


class HugePictures(StreamFailure):
    """A source whose pictures are larger than may be decoded."""


@dataclass(slots=True)
class Rounds:
    """The times of a film that is shown again and again: a round begins when the last picture of the one before it was
    shown as long as those before.

    Attributes:
        began: seconds at which this round began.
    """

    began: float = 0.0
    _last: float | None = None
    _step: float = STILL_SECONDS

    def at(self, seconds: float) -> float:
        """The time of a picture that comes ``seconds`` after the first of its round."""
        if self._last is not None and seconds > self._last:
            self._step = seconds - self._last
        self._last = seconds
        return self.began + seconds

    def end(self) -> None:
        """The round is over. One without a picture took no time."""
        if self._last is not None:
            self.began += self._last + self._step
            self._last = None


def bound_pixels(stream: Any, *, max_pixels: int) -> None:
    """Have the decoder of ``stream`` refuse larger pictures before it makes room for them, also ones that come later.

    Raises:
        HugePictures: the stream's parameters already name larger ones.
    """
    coded = stream.codec_context
    if coded.width * coded.height > max_pixels:
        raise HugePictures(
            "source_failed",
            f"its pictures are {coded.width}x{coded.height}, {max_pixels} pixels are the most that is decoded; "
            "send smaller ones",
        )
    coded.options = {**coded.options, "max_pixels": str(max_pixels)}


def pictures(
    film: Path, *, max_fps: float | None = None, max_pixels: int | None = None
) -> Iterator[tuple[float, av.VideoFrame]]:
    """Each picture with its seconds since the first, in the order in which they are shown.

    Args:
        max_fps: pictures that come sooner than this allows are left out; of one at exactly this rate none is.
        max_pixels: as ``bound_pixels``'; None: any.

    Raises:
        InvalidMedia: the file holds no picture stream.
        HugePictures: as ``bound_pixels``.
    """
    track = require_picture(probe(film))
    first: float | None = None
    due = 0.0
    with open_media(film, name=display_name(film)) as container:
        stream = container.streams[track.index]
        if max_pixels is not None:
            bound_pixels(stream, max_pixels=max_pixels)
        for frame in decode_past_damage(container, stream):
            if frame.time is None:
                continue
            first = frame.time if first is None else first
            seconds = frame.time - first
            # Half a step of tolerance, for the times of files are rounded.
            if max_fps is not None and seconds < due - 0.5 / max_fps:
                continue
            due = max(due + (1 / max_fps if max_fps else 0.0), seconds)
            yield seconds, frame
