"""What a media file really holds, counted from its packets. A header's claim is only ever compared, never believed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import av
from av.container import InputContainer

from vision_bench.errors import InvalidMedia
from vision_bench.media.container import READING_ENDS, display_name, open_media, reason_of
from vision_bench.media.times import PictureTimes, steady_rate
from vision_bench.media.tracks import AudioTrack, MediaInfo, VideoTrack

UNKNOWN_CODEC = "unknown"
_PICTURE_FORMATS = frozenset({"image2", "image2pipe", "ico", "tty"})
_ANIMATIONS = frozenset({"gif", "apng"})
_PLAYLIST_FORMATS = frozenset({"hls", "concat", "dash", "sdp", "rtsp", "imf"})
_PICTURE_REMEDY = "a picture is not a film; give a video file"
_END_SLACK_SECONDS = 0.5
_FULL_RANGE = 2  # AVCOL_RANGE_JPEG
_FALLBACK_RATE = Fraction(25)
"""Frames per second of a raw elementary stream, whose frames carry no time; libav assumes the same."""


class Inspection(NamedTuple):
    """``info`` for people; the rest for cutting.

    Attributes:
        times: of the frames; None without a picture.
        sound_seconds: by stream index, when each sound packet starts on the container's own clock, ascending.
    """

    info: MediaInfo
    times: PictureTimes | None
    sound_seconds: dict[int, list[float]]


def probe(source: Path | bytes, *, name: str | None = None) -> MediaInfo:
    """Read every packet and say what the file holds.

    Args:
        source: a file, or its bytes.
        name: what to call it in messages; the file's own name by default.

    Raises:
        InvalidMedia: not readable, a still picture, a play list, or no stream with a packet.
    """
    return inspect_media(source, name=name).info


def inspect_media(source: Path | bytes, *, name: str | None = None) -> Inspection:
    """As `probe`, with the time of every frame. Raises as `probe` does."""
    shown = name if name is not None else (display_name(source) if isinstance(source, Path) else "<bytes>")
    warnings: list[str] = []
    picture: VideoTrack | None = None
    times: PictureTimes | None = None
    with open_media(source, name=shown) as container:
        _refuse_other_kinds(container, shown)
        video = next((s for s in container.streams.video if not s.disposition & s.disposition.attached_pic), None)
        tallies, broken = _count_packets(container, video)
        if broken is not None:
            warnings.append(f"damaged: reading stopped early ({broken}); what comes before it is used")
        if video is not None and tallies[video.index].packets:
            picture, times = _picture(source, shown, video, tallies[video.index], warnings)
        sounds = tuple(_sound(stream, tallies[stream.index]) for stream in container.streams.audio)
        heard = {s.index: _seconds(s, tallies[s.index]) for s in container.streams.audio}
        size_bytes, format_name = container.size, container.format.name
    if times is not None and len(times.pts) == 1 and format_name in _ANIMATIONS:
        raise InvalidMedia(f"{shown}: a still picture ({format_name}, one frame); {_PICTURE_REMEDY}")
    if picture is None and not any(track.packets for track in sounds):
        raise InvalidMedia(f"{shown}: no picture and no sound in it ({format_name}); record or copy it again")
    warnings += _sound_warnings(sounds) + _end_warnings(picture, sounds)
    info = MediaInfo(
        name=shown,
        container=format_name,
        size_bytes=size_bytes,
        duration_seconds=_whole_duration(picture, sounds),
        video=picture,
        audio=sounds,
        warnings=tuple(warnings),
    )
    return Inspection(info, times, heard)


@dataclass(slots=True)
class _Tally:
    """What the packets of one stream say."""

    packets: int = 0
    timeless: int = 0
    corrupt: int = 0
    pts: list[int] = field(default_factory=list)
    last: int | None = None
    end: int | None = None
    durations: list[int] = field(default_factory=list)


def _refuse_other_kinds(container: InputContainer, shown: str) -> None:
    formats = set(container.format.name.split(","))
    if formats & _PLAYLIST_FORMATS:
        raise InvalidMedia(f"{shown}: a play list ({container.format.name}), not a film; give the file it names")
    if formats & _PICTURE_FORMATS or (container.format.name.endswith("_pipe") and container.duration is None):
        raise InvalidMedia(f"{shown}: a still picture or text ({container.format.name}); {_PICTURE_REMEDY}")


def _count_packets(container: InputContainer, video: Any) -> tuple[dict[int, _Tally], str | None]:
    """Tallies by stream index, and why reading stopped before the end (None when it did not)."""
    streams = [s for s in (video, *container.streams.audio) if s is not None]
    tallies = {stream.index: _Tally() for stream in container.streams}
    if not streams:
        return tallies, None
    try:
        for packet in container.demux(streams):
            # An edit list marks what lies before the first shown frame; the flush packet at the end is empty.
            if packet.size == 0 or packet.is_discard:
                continue
            tally = tallies[packet.stream_index]
            tally.packets += 1
            tally.corrupt += packet.is_corrupt
            if packet.pts is None:
                tally.timeless += 1
                continue
            tally.pts.append(packet.pts)
            # Only the last frame's own length counts: MP4 stores steps of decoding order, so that with reordered
            # frames the longest step may sit on a frame that is shown for an instant.
            if tally.last is None or packet.pts >= tally.last:
                tally.last, tally.end = packet.pts, packet.pts + (packet.duration or 0)
            if packet.duration:
                tally.durations.append(packet.duration)
    except READING_ENDS as problem:
        return tallies, reason_of(problem)
    return tallies, None


def _picture(
    source: Path | bytes, shown: str, stream: Any, tally: _Tally, warnings: list[str]
) -> tuple[VideoTrack, PictureTimes]:
    first = _first_frame(source, shown, stream.index)
    hints = (stream.average_rate, stream.guessed_rate)
    time_base = Fraction(stream.time_base)
    if tally.timeless:
        pts, time_base = _decoded_times(source, shown, stream.index, time_base, hints)
        warnings.append(f"no_times: {tally.timeless} packets of picture stream {stream.index} carry no time; decoded")
    else:
        pts = sorted(set(tally.pts))
        if len(pts) != len(tally.pts):
            warnings.append(f"repeated_times: {len(tally.pts) - len(pts)} frames share a time with another")
    rate = steady_rate(pts, time_base, hints)
    times = PictureTimes(tuple(pts), time_base, rate, _last_duration(pts, tally, rate, time_base), bool(tally.timeless))
    if stream.frames and stream.frames > tally.packets:
        warnings.append(
            f"truncated: the header claims {stream.frames} frames, the file holds {tally.packets}; "
            "copy it again if the rest matters"
        )
    if tally.corrupt:
        warnings.append(f"damaged: {tally.corrupt} packets of picture stream {stream.index} are marked corrupt")
    rotation, mirrored = _turn(first)
    width, height = (first.height, first.width) if rotation % 180 else (first.width, first.height)
    track = VideoTrack(
        index=stream.index,
        codec=_codec(stream),
        width=width,
        height=height,
        rotation=rotation,
        pix_fmt=first.format.name,
        frames=len(pts),
        fps=times.mean_rate,
        is_constant_rate=rate is not None or len(pts) == 1,
        start_seconds=float(pts[0] * time_base),
        duration_seconds=float(times.duration),
        sample_aspect=Fraction(stream.sample_aspect_ratio) if stream.sample_aspect_ratio else None,
        is_interlaced=bool(first.interlaced_frame),
        is_mirrored=mirrored,
        is_full_range=first.format.name.startswith("yuvj") or first.color_range == _FULL_RANGE,
    )
    return track, times


def _first_frame(source: Path | bytes, shown: str, index: int) -> Any:
    """The first frame that decodes: its size, pixel format and turn are the truth, not the header's."""
    with open_media(source, name=shown) as container:
        for frame in decode_past_damage(container, container.streams[index]):
            return frame
        codec = _codec(container.streams[index])
    raise InvalidMedia(f"{shown}: no frame of picture stream {index} ({codec}) can be decoded; copy or record it again")


def decode_past_damage(container: InputContainer, stream: Any) -> Iterator[Any]:
    """Frames of ``stream``, leaving out packets that cannot be decoded and ending where reading fails."""
    try:
        for packet in container.demux(stream):
            try:
                yield from packet.decode()
            except (av.error.InvalidDataError, av.error.ArgumentError):
                continue
            except av.error.EOFError:
                return
    except READING_ENDS:
        return


def _decoded_times(
    source: Path | bytes, shown: str, index: int, time_base: Fraction, hints: tuple[Fraction | None, ...]
) -> tuple[list[int], Fraction]:
    """Times of the decoded frames; where those have none either, equal steps of the stated rate."""
    with open_media(source, name=shown) as container:
        found = [frame.pts for frame in decode_past_damage(container, container.streams[index])]
    known = sorted({tick for tick in found if tick is not None})
    if len(known) == len(found):
        return known, time_base
    return list(range(len(found))), 1 / next((rate for rate in hints if rate), _FALLBACK_RATE)


def _last_duration(pts: list[int], tally: _Tally, rate: Fraction | None, time_base: Fraction) -> int:
    if rate is not None:
        return round(1 / (rate * time_base))
    if tally.end is not None and tally.end > pts[-1]:
        return tally.end - pts[-1]
    steps = [later - earlier for earlier, later in pairwise(pts)]
    return int(median(steps or tally.durations or [0]))


def _turn(frame: Any) -> tuple[int, bool]:
    """(degrees clockwise in quarter turns, mirrored) that bring a decoded frame upright."""
    matrix = frame.side_data.get("DISPLAYMATRIX")
    if matrix is None:
        return 0, False
    a, b, _, c, d = memoryview(bytes(matrix)).cast("i")[:5]
    angle = float(frame.rotation)
    quarter = round(-angle / 90) % 4 * 90 if isfinite(angle) else 0
    return quarter, a * d - b * c < 0


def _sound(stream: Any, tally: _Tally) -> AudioTrack:
    context = stream.codec_context  # None when no decoder is known
    start = min(tally.pts) if tally.pts else 0
    return AudioTrack(
        index=stream.index,
        codec=_codec(stream),
        sample_rate=context.sample_rate if context is not None else 0,
        channels=context.channels if context is not None else 0,
        language=None if stream.language in (None, "und") else stream.language,
        packets=tally.packets,
        start_seconds=float(start * stream.time_base),
        duration_seconds=float(((tally.end or start) - start) * stream.time_base),
        is_default=bool(stream.disposition & stream.disposition.default),
    )


def _codec(stream: Any) -> str:
    return stream.codec_context.codec.canonical_name if stream.codec_context is not None else UNKNOWN_CODEC


def _seconds(stream: Any, tally: _Tally) -> list[float]:
    seconds_per_tick = float(stream.time_base)  # a Fraction for each packet would cost more than reading it
    return [tick * seconds_per_tick for tick in sorted(tally.pts)]


def _sound_warnings(sounds: tuple[AudioTrack, ...]) -> list[str]:
    empty = [track.index for track in sounds if not track.packets]
    return [f"empty_sound: sound stream {index} is declared but holds no packet" for index in empty]


def _end_warnings(picture: VideoTrack | None, sounds: tuple[AudioTrack, ...]) -> list[str]:
    """One track that ends well before the other."""
    filled = [track for track in sounds if track.packets]
    if picture is None or not filled:
        return []
    picture_end = picture.start_seconds + picture.duration_seconds
    sound_end = max(track.start_seconds + track.duration_seconds for track in filled)
    if abs(picture_end - sound_end) <= _END_SLACK_SECONDS:
        return []
    early, late = ("picture", "sound") if picture_end < sound_end else ("sound", "picture")
    return [f"{early}_ends_early: {abs(picture_end - sound_end):.3f} s before the {late}"]


def _whole_duration(picture: VideoTrack | None, sounds: tuple[AudioTrack, ...]) -> float:
    spans = [(t.start_seconds, t.duration_seconds) for t in (picture, *sounds) if t is not None and t.duration_seconds]
    if not spans:
        return 0.0
    return max(start + length for start, length in spans) - min(start for start, _ in spans)
