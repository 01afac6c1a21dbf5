"""Decode chosen frames: upright RGB with the time each is shown.

Frames are chosen from packet times, before anything is decoded, so that frames which no other frame refers to need not
be decoded unless they are wanted. A damaged file gives the frames that survive.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import av
import av.error
import numpy as np
from numpy.typing import NDArray

from vision_bench.errors import InvalidMedia, InvalidRequest
from vision_bench.media.sampling import indices_at_fps
from vision_bench.media.source import open_source, picture_stream, source_name

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream


class DecodedFrames(NamedTuple):
    """Frames in the order they are shown."""

    frames: NDArray[np.uint8]
    """(T, H, W, 3) RGB, upright: the rotation that the container asks for is applied."""

    pts_seconds: NDArray[np.float64]
    """(T,) seconds from the clip's first frame, ascending."""


class Timeline(NamedTuple):
    """When every frame of a clip is shown, read without decoding where the container tells."""

    pts: tuple[int, ...]
    """Ascending presentation times, or frame numbers where the file has no times."""

    seconds_per_tick: float
    has_times: bool

    @property
    def fps(self) -> float:
        """Mean frames a second; 1.0 for a single frame, whose rate nobody can tell."""
        if len(self.pts) < 2:
            return 1.0
        return (len(self.pts) - 1) / ((self.pts[-1] - self.pts[0]) * self.seconds_per_tick)


def decode_frames(
    source: Path | bytes,
    *,
    indices: Sequence[int] | None = None,
    fps: float | None = None,
    max_pixels: int | None = None,
) -> DecodedFrames:
    """The frames asked for; all of them when neither ``indices`` nor ``fps`` is given.

    Args:
        source: a file, or its bytes.
        indices: which frames, counted from 0 in the order shown. Negative ones count from the end.
        fps: sample as :func:`vision_bench.media.sampling.indices_at_fps` does. Not together with ``indices``.
        max_pixels: upper bound of width x height of a frame; larger ones are scaled down, keeping their shape.

    Raises:
        InvalidMedia: no picture track, or no frame of it can be decoded. A file that is damaged in part gives what
            can be decoded, so T may be smaller than the number of indices.
        InvalidRequest: both ``indices`` and ``fps``, or an index outside the clip.
    """
    if indices is not None and fps is not None:
        raise InvalidRequest("give indices or fps, not both")
    timeline = read_timeline(source)
    if fps is not None:
        indices = indices_at_fps(len(timeline.pts), timeline.fps, fps)
    wanted = _wanted_ticks(timeline, indices, source)
    taken: list[tuple[int, NDArray[np.uint8]]] = []
    with closing(_decode(source, timeline.has_times, wanted)) as decoded:
        for tick, frame in decoded:
            taken.append((tick, _upright_rgb(frame, max_pixels)))
            if len(taken) == len(wanted):
                break
    if not taken:
        raise InvalidMedia(f"{source_name(source)}: none of {len(wanted)} frames can be decoded; the file is damaged")
    taken.sort(key=lambda item: item[0])
    # A stream may change its size on the way; the model that is fed from here takes one size.
    shape = taken[0][1].shape
    taken = [item for item in taken if item[1].shape == shape]
    ticks = np.array([tick for tick, _ in taken], dtype=np.float64)
    return DecodedFrames(
        np.stack([picture for _, picture in taken]), (ticks - timeline.pts[0]) * timeline.seconds_per_tick
    )


def read_timeline(source: Path | bytes) -> Timeline:
    """When each frame is shown, from the packets; by decoding once where packets carry no times.

    Raises:
        InvalidMedia: no picture track, or one without a single frame.
    """
    with open_source(source) as container:
        stream = _stream(container, source)
        seconds_per_tick = float(stream.time_base) if stream.time_base else 0.0
        mean_rate = float(stream.average_rate or stream.guessed_rate or 25)
        # Edit lists mark packets that are decoded for others' sake and never shown.
        times: list[int | None] = [packet.pts for packet in _packets(container, stream) if not packet.is_discard]
    known = sorted({time for time in times if time is not None})
    if known and len(known) == len(times) and seconds_per_tick > 0:
        return Timeline(tuple(known), seconds_per_tick, has_times=True)
    count = sum(1 for _ in _decode(source, has_times=False, wanted=None))
    if not count:
        raise InvalidMedia(f"{source_name(source)}: the picture track holds no frame that can be decoded")
    return Timeline(tuple(range(count)), 1 / mean_rate, has_times=False)


def _wanted_ticks(timeline: Timeline, indices: Sequence[int] | None, source: Path | bytes) -> frozenset[int]:
    if indices is None:
        return frozenset(timeline.pts)
    try:
        return frozenset(timeline.pts[index] for index in indices)
    except IndexError:
        raise InvalidRequest(
            f"{source_name(source)} has {len(timeline.pts)} frames; index {max(indices)} is outside"
        ) from None


def _decode(source: Path | bytes, has_times: bool, wanted: Collection[int] | None) -> Generator[tuple[int, VideoFrame]]:
    """Frames whose tick is wanted (None: all), each with its tick: its pts, or its number where there are no times."""
    with open_source(source) as container:
        stream = _stream(container, source)
        stream.thread_type = "AUTO"
        number = -1
        for packet in chain(_packets(container, stream), [None]):
            if has_times and wanted is not None:
                # Exact, not an approximation: a frame that no other refers to may go undecoded.
                is_wanted = packet is None or packet.pts in wanted
                stream.codec_context.skip_frame = "DEFAULT" if is_wanted else "NONREF"
            try:
                frames = stream.codec_context.decode(packet)
            except av.error.FFmpegError:
                continue
            for frame in frames:
                number += 1
                tick = frame.pts if has_times and frame.pts is not None else number
                if wanted is None or tick in wanted:
                    yield tick, frame


def _packets(container: InputContainer, stream: VideoStream) -> Iterator[Any]:
    """Packets up to the end of the file or to where it breaks off; the library's empty end mark is left out."""
    try:
        for packet in container.demux(stream):
            if packet.size:
                yield packet
    except av.error.FFmpegError:
        return


def _stream(container: InputContainer, source: Path | bytes) -> VideoStream:
    stream = picture_stream(container)
    if stream is None:
        raise InvalidMedia(f"{source_name(source)}: no picture track; send a file that holds video")
    return stream


def _upright_rgb(frame: VideoFrame, max_pixels: int | None) -> NDArray[np.uint8]:
    width, height = fit_pixels(frame.width, frame.height, max_pixels)
    interpolation = "AREA" if width < frame.width else "BILINEAR"
    rgb = frame.to_ndarray(format="rgb24", width=width, height=height, interpolation=interpolation)
    # The library reports how far the picture must be turned counter-clockwise; so does rot90.
    return np.ascontiguousarray(np.rot90(rgb, round(frame.rotation / 90) % 4)).astype(np.uint8, copy=False)


def fit_pixels(width: int, height: int, max_pixels: int | None) -> tuple[int, int]:
    """The largest size of the same shape with no more than ``max_pixels``; never larger than given, never below 1."""
    if max_pixels is None or width * height <= max_pixels:
        return width, height
    if max_pixels < 1:
        raise InvalidRequest(f"max_pixels is {max_pixels}; it must be one or more")
    scale = math.sqrt(max_pixels / (width * height))
    return max(1, math.floor(width * scale)), max(1, math.floor(height * scale))
