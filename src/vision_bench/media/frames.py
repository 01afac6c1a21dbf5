"""Decode chosen frames: upright RGB with the time each is shown.

Frames are chosen from packet times, before anything is decoded, so that frames which no other frame refers to need not
be decoded unless they are wanted. A damaged file gives the frames that survive.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import av.error
import numpy as np
from numpy.typing import NDArray

from vision_bench.errors import InvalidMedia, InvalidRequest
from vision_bench.media.container import READING_ENDS, open_media
from vision_bench.media.probe import inspect_media
from vision_bench.media.sampling import indices_at_fps
from vision_bench.media.times import PictureTimes
from vision_bench.media.tracks import VideoTrack, require_picture


class DecodedFrames(NamedTuple):
    """Frames in the order they are shown."""

    frames: NDArray[np.uint8]
    """(T, H, W, 3) RGB, upright: the turn that the container asks for is applied."""

    pts_seconds: NDArray[np.float64]
    """(T,) seconds from the clip's first frame, ascending."""


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
        InvalidMedia: no picture track, or none of the frames can be decoded. A file that is damaged in part gives
            what can be decoded, so T may be smaller than the number of indices.
        InvalidRequest: both ``indices`` and ``fps``, an index outside the clip, or no pixels at all.
    """
    if indices is not None and fps is not None:
        raise InvalidRequest("give indices or fps, not both")
    info, times, _ = inspect_media(source)
    track = require_picture(info)
    if times is None:  # require_picture has seen to it
        raise InvalidMedia(f"{info.name}: no picture track")
    if fps is not None:
        indices = indices_at_fps(len(times.pts), float(times.mean_rate or 1), fps)
    wanted = _wanted(len(times.pts), indices, info.name)
    taken: dict[int, NDArray[np.uint8]] = {}
    with closing(_decode(source, track, times, wanted)) as decoded:
        for index, frame in decoded:
            taken[index] = _upright_rgb(frame, track, max_pixels)
            if len(taken) == len(wanted):
                break
    if not taken:
        raise InvalidMedia(f"{info.name}: none of {len(wanted)} frames can be decoded; copy or record it again")
    # A stream may change its size on the way; what is fed from here takes one size.
    shape = taken[min(taken)].shape
    order = [index for index in sorted(taken) if taken[index].shape == shape]
    pts_seconds = np.array([float(times.start_of(index)) for index in order], dtype=np.float64)
    return DecodedFrames(np.stack([taken[index] for index in order]), pts_seconds)


def _wanted(frame_count: int, indices: Sequence[int] | None, name: str) -> frozenset[int]:
    if indices is None:
        return frozenset(range(frame_count))
    for index in indices:
        if not -frame_count <= index < frame_count:
            raise InvalidRequest(f"{name} has {frame_count} frames, numbered from 0; there is no frame {index}")
    return frozenset(index % frame_count for index in indices)


def _decode(
    source: Path | bytes, track: VideoTrack, times: PictureTimes, wanted: Collection[int]
) -> Generator[tuple[int, Any]]:
    """Wanted frames with their index, as they leave the decoder."""
    index_of = {tick: index for index, tick in enumerate(times.pts)}
    last_pts = times.pts[max(wanted)]
    with open_media(source) as container:
        stream = container.streams.video[_place(container, track)]
        stream.thread_type = "AUTO"
        decoder = stream.codec_context
        number = -1
        for packet in _packets(container, stream):
            if not times.is_decoded and packet.pts is not None:
                # Exact, not an approximation: frames that no other frame refers to go undecoded unless wanted.
                decoder.skip_frame = "DEFAULT" if index_of.get(packet.pts) in wanted else "NONREF"
            try:
                frames = packet.decode()
            except av.error.FFmpegError:
                continue
            for frame in frames:
                number += 1
                index = number if times.is_decoded else index_of.get(frame.pts)
                if index is not None and index in wanted:
                    yield index, frame
                elif not times.is_decoded and frame.pts is not None and frame.pts > last_pts:
                    return


def _place(container: Any, track: VideoTrack) -> int:
    return next(place for place, stream in enumerate(container.streams.video) if stream.index == track.index)


def _packets(container: Any, stream: Any) -> Iterator[Any]:
    """Packets up to the end of the file or to where it breaks off; the last one, empty, flushes the decoder."""
    try:
        yield from container.demux(stream)
    except READING_ENDS:
        return


def _upright_rgb(frame: Any, track: VideoTrack, max_pixels: int | None) -> NDArray[np.uint8]:
    width, height = fit_pixels(frame.width, frame.height, max_pixels)
    interpolation = "AREA" if width < frame.width else "BILINEAR"
    rgb: NDArray[np.uint8] = frame.to_ndarray(format="rgb24", width=width, height=height, interpolation=interpolation)
    if track.is_mirrored:
        rgb = rgb[::-1]
    return np.ascontiguousarray(np.rot90(rgb, -track.rotation // 90))  # rot90 turns counter-clockwise


def fit_pixels(width: int, height: int, max_pixels: int | None) -> tuple[int, int]:
    """The largest size of about the same shape with no more than ``max_pixels``; never larger than given.

    Raises:
        InvalidRequest: fewer than one pixel asked for.
    """
    if max_pixels is None or width * height <= max_pixels:
        return width, height
    if max_pixels < 1:
        raise InvalidRequest(f"max_pixels is {max_pixels}; it must be one or more")
    scale = math.sqrt(max_pixels / (width * height))
    fitted_width, fitted_height = max(1, math.floor(width * scale)), max(1, math.floor(height * scale))
    # A side held up at one pixel leaves the other to keep the bound.
    if fitted_width == 1:
        return 1, min(fitted_height, max_pixels)
    return min(fitted_width, max_pixels // fitted_height), fitted_height
