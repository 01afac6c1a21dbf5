"""Cut one window in this process: every frame is looked at, so whatever the source, the right ones are in the clip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from av.codec.context import Flags
from av.container import OutputContainer
from av.filter import Graph

from vision_bench.errors import InvalidMedia
from vision_bench.media.chains import Step, form_steps, sound_steps, turn_steps
from vision_bench.media.container import open_media
from vision_bench.media.plan import Window
from vision_bench.media.probe import decode_past_damage
from vision_bench.media.times import PictureTimes
from vision_bench.media.tracks import AudioTrack, VideoTrack

# A seek that lands too late is tried again from this much earlier, then from the start of the file.
_EARLIER_SECONDS = 15
_SOUND_LEAD_SECONDS = 0.5
"""Decoding starts this much before the wanted sound: a sound decoder needs the packet before to be right."""
_MAX_RATE = 1_000


@dataclass(frozen=True, slots=True)
class Source:
    """A source as the cutters need it."""

    path: Path
    name: str
    video: VideoTrack
    audio: AudioTrack | None
    times: PictureTimes

    @property
    def zero_seconds(self) -> Fraction:
        """The first frame on the container's own clock."""
        return Fraction(0) if self.times.is_decoded else self.times.pts[0] * self.times.time_base


@dataclass(frozen=True, slots=True)
class Codecs:
    """What to write: ``video`` and ``audio`` are libav's names; ``threads`` 0 lets the encoder choose."""

    video: str
    audio: str
    bitrate: int | None = None
    options: tuple[tuple[str, str], ...] = ()
    threads: int = 0


def write_window(source: Source, window: Window, sink: OutputContainer, codecs: Codecs, *, with_sound: bool) -> int:
    """Decode, form and encode one window into ``sink``; returns how many frames were written.

    Raises:
        InvalidMedia: no frame of the window can be decoded.
    """
    frames = formed_frames(source, window)
    first = next(frames, None)
    if first is None:
        raise InvalidMedia(
            f"{source.name}: no frame of picture stream {source.video.index} between {float(window.start):g} s and "
            f"{float(window.end):g} s can be decoded"
        )
    picture = _picture_stream(source, sink, codecs, first)
    sound: Any = None
    samples: Iterator[Any] = iter(())
    # Where damage took the window's first frames, picture and sound both start at the first that is left.
    late = first.pts
    if with_sound and source.audio is not None:
        samples = formed_sound(source, window, window.origin + late * first.time_base)
        head = next(samples, None)
        if head is not None:
            sound = sink.add_stream(codecs.audio, rate=head.sample_rate, layout=head.layout.name)
            samples = _chain(head, samples)
    written = 0
    # Sound is muxed as the picture passes it, so that neither waits in memory for the other.
    pending = next(samples, None)
    for frame in _chain(first, frames):
        frame.pts -= late
        while pending is not None and pending.time <= frame.time:
            sink.mux(sound.encode(pending))
            pending = next(samples, None)
        sink.mux(picture.encode(frame))
        written += 1
    while pending is not None:
        sink.mux(sound.encode(pending))
        pending = next(samples, None)
    sink.mux(picture.encode(None))
    if sound is not None:
        sink.mux(sound.encode(None))
    return written


def formed_frames(source: Source, window: Window) -> Iterator[Any]:
    """The window's frames: upright, even size, yuv420p, progressive, timed from the window's origin."""
    rate = source.times.rate
    tick = 1 / rate if rate is not None else source.times.time_base
    zero = source.times.pts[0] * source.times.time_base + window.origin
    steps = turn_steps(source.video) + form_steps(source.video)
    held = None
    for frame in _filtered(_window_frames(source, window), steps):
        # By its time, not by counting: a frame that damage took leaves a hole, and the sound stays in step.
        stamp = round((frame.pts * frame.time_base - zero) / tick)
        if held is not None and stamp <= held.pts:
            continue
        frame.pts, frame.time_base = stamp, tick
        frame.pict_type = 0  # else the encoder would copy the source's key frames
        if held is not None:
            held.duration = stamp - held.pts
            yield held
        held = frame
    if held is not None:
        # Without it the file would show the last frame for as long as some earlier one.
        held.duration = 1 if rate is not None else _last_duration(source.times, window)
        yield held


def _last_duration(times: PictureTimes, window: Window) -> int:
    """Ticks for which the window's last frame is shown: until the next, or the window's end if that comes first."""
    tick = times.pts[window.stop - 1]
    until = times.pts[window.stop] if window.stop < len(times.pts) else tick + times.last_duration
    end = round(window.sound_end / times.time_base) + times.pts[0]
    return max(1, min(until, end) - tick)


def formed_sound(source: Source, window: Window, origin: Fraction) -> Iterator[Any]:
    """The window's sound from ``origin`` (seconds from the source's first frame), which becomes 0; as AAC takes it."""
    track = source.audio
    if track is None:
        return
    start = float(source.zero_seconds + origin)
    end = float(source.zero_seconds + window.sound_end)
    with open_media(source.path, name=source.name) as container:
        stream: Any = container.streams[track.index]
        if start - _SOUND_LEAD_SECONDS > track.start_seconds:
            _seek(container, stream, int((start - _SOUND_LEAD_SECONDS) / stream.time_base))
        frames = _timed(decode_past_damage(container, stream), track.start_seconds)
        yield from _filtered(_until(frames, end), sound_steps(track, start, end))


def _timed(frames: Iterable[Any], start_seconds: float) -> Iterator[Any]:
    """Sound frames, each with a time: one that has none starts where the one before it ends."""
    next_seconds = start_seconds
    for frame in frames:
        if frame.time_base is None:
            frame.time_base = Fraction(1, frame.sample_rate)
        if frame.pts is None:
            frame.pts = round(next_seconds / frame.time_base)
        next_seconds = float(frame.pts * frame.time_base) + frame.samples / frame.sample_rate
        yield frame


def _until(frames: Iterable[Any], end_seconds: float) -> Iterator[Any]:
    for frame in frames:
        if frame.time >= end_seconds:
            return
        yield frame


def _window_frames(source: Source, window: Window) -> Iterator[Any]:
    """Decoded frames of the window, their ``pts`` in the ticks of ``source.times``."""
    times = source.times
    if times.is_decoded:
        yield from _numbered_frames(source, window)
        return
    wanted, after = times.pts[window.first], times.pts[window.stop - 1] + 1
    seconds_back: float | None
    for seconds_back in (0, _EARLIER_SECONDS, None):
        with open_media(source.path, name=source.name) as container:
            stream: Any = container.streams[source.video.index]
            stream.thread_type = "AUTO"
            target = wanted - int((seconds_back or 0) / times.time_base)
            if seconds_back is not None and target > times.pts[0]:
                _seek(container, stream, target)
            frames = (frame for frame in decode_past_damage(container, stream) if frame.pts is not None)
            inside = _between(frames, wanted, after)
            head = next(inside, None)
            # Some containers state few times, and the library's guesses between them depend on where it began.
            if seconds_back is not None and (head is None or head.pts != wanted):
                continue
            if head is not None:
                yield from _chain(head, inside)
            return


def _between(frames: Iterable[Any], first: int, stop: int) -> Iterator[Any]:
    for frame in frames:
        if frame.pts >= stop:
            return
        if frame.pts >= first:
            yield frame


def _seek(container: Any, stream: Any, tick: int) -> None:
    """Go to the key frame before ``tick``; where that fails, reading goes on from where it was, at the start."""
    with suppress(av.error.FFmpegError):
        container.seek(tick, stream=stream)


def _numbered_frames(source: Source, window: Window) -> Iterator[Any]:
    """For a source without times: frames by number, decoded from the start."""
    with open_media(source.path, name=source.name) as container:
        stream = container.streams[source.video.index]
        for number, frame in enumerate(decode_past_damage(container, stream)):
            if number >= window.stop:
                return
            if number >= window.first:
                frame.pts, frame.time_base = source.times.pts[number], source.times.time_base
                yield frame


def _filtered(frames: Iterable[Any], steps: list[Step]) -> Iterator[Any]:
    """``frames`` through a filter graph, which is made anew when their form changes in the middle."""
    if not steps:
        yield from frames
        return
    graph: Graph | None = None
    form: tuple[Any, ...] = ()
    for frame in frames:
        now = _form_of(frame)
        if graph is None or now != form:
            if graph is not None:
                yield from _drain(graph, flush=True)
            graph, form = _graph(frame, steps), now
        graph.push(frame)
        yield from _drain(graph)
    if graph is not None:
        yield from _drain(graph, flush=True)


def _form_of(frame: Any) -> tuple[Any, ...]:
    if isinstance(frame, av.VideoFrame):
        return frame.width, frame.height, frame.format.name
    return frame.sample_rate, frame.layout.name, frame.format.name


def _graph(frame: Any, steps: list[Step]) -> Graph:
    graph = Graph()
    is_video = isinstance(frame, av.VideoFrame)
    if is_video:
        head = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=frame.time_base)
    else:
        head = graph.add_abuffer(
            sample_rate=frame.sample_rate,
            format=frame.format.name,
            layout=frame.layout.name,
            time_base=frame.time_base,
        )
    nodes = [graph.add(name, arguments or None) for name, arguments in steps]
    graph.link_nodes(head, *nodes, graph.add("buffersink" if is_video else "abuffersink")).configure()
    return graph


def _drain(graph: Graph, *, flush: bool = False) -> Iterator[Any]:
    if flush:
        graph.push(None)
    while True:
        try:
            yield graph.pull()
        except (av.error.BlockingIOError, av.error.EOFError):
            return


def _picture_stream(source: Source, sink: OutputContainer, codecs: Codecs, first: Any) -> Any:
    rate = source.times.mean_rate or Fraction(1)
    stream: Any = sink.add_stream(codecs.video, rate=min(rate, Fraction(_MAX_RATE)).limit_denominator(1001))
    stream.width, stream.height, stream.pix_fmt = first.width, first.height, "yuv420p"
    stream.codec_context.time_base = first.time_base
    stream.codec_context.thread_count = codecs.threads
    stream.codec_context.flags |= Flags.frame_duration
    if codecs.bitrate is not None:
        stream.bit_rate = codecs.bitrate
    stream.options = dict(codecs.options)
    aspect = source.video.sample_aspect
    if aspect and aspect != 1:
        stream.codec_context.sample_aspect_ratio = 1 / aspect if source.video.rotation % 180 else aspect
    stream.codec_context.color_range = 1  # AVCOL_RANGE_MPEG
    for name in ("color_primaries", "color_trc", "colorspace"):
        value = getattr(first, name)
        if value:
            setattr(stream.codec_context, name, value)
    return stream


def _chain(head: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield head
    yield from rest
