"""Copies of a clip that differ in one thing only: the controls of an experiment.

They live in memory; nothing is written. The index stands at the end of each copy, since moving it to the
front (faststart) makes the muxer open the file a second time by name.
"""

from __future__ import annotations

import io
from pathlib import Path

import av
import numpy as np
from av.audio.stream import AudioStream
from av.container import InputContainer, OutputContainer
from av.video.stream import VideoStream

from vision_bench.errors import InvalidMedia


def muted(source: Path | bytes) -> bytes:
    """The same picture, packet for packet, with digital silence of the same length for sound.

    The sound track stays: a server that counts sound tokens counts as many as before, so an answer that
    changes can have changed for one reason only.

    Raises:
        InvalidMedia: no picture, or no sound track to silence.
    """
    sample_count = _count_samples(source)
    target = io.BytesIO()
    # The source stays open while the copy is written: a template stream dies with its container.
    with _opened(source) as container, av.open(target, "w", format="mp4") as output:
        picture, sound = _tracks(container, "mute")
        video = output.add_stream_from_template(picture)
        audio = output.add_stream("aac", rate=sound.rate, layout=sound.layout.name)
        for packet in container.demux(picture):
            if packet.dts is not None:
                packet.stream = video
                output.mux(packet)
        _encode_silence(output, audio, sample_count)
    return target.getvalue()


def unique(source: Path | bytes, number: int) -> bytes:
    """The same clip with its last ``number`` sound packets (about 20 ms each) left out.

    Picture and sound then both hash differently (the file by its bytes, the sound by its samples), so no
    cache of an earlier request can serve it, and vLLM's processor cache does not meet known sound with an
    unknown picture, which it answers with 400. Without a sound track the file gets a free box instead.

    Args:
        source: an MP4 clip.
        number: 0 gives the clip re-muxed and otherwise whole; the same number gives the same bytes.
    """
    if number < 0:
        raise ValueError(f"number must not be negative, got {number}")
    with _opened(source) as container:
        if not container.streams.audio:
            return _read(source) + _free_box(number)
        picture, sound = _tracks(container, "vary")
        packets = [packet for packet in container.demux(picture, sound) if packet.dts is not None]
        kept_sound = max(1, sum(packet.stream is sound for packet in packets) - number)
        target = io.BytesIO()
        with av.open(target, "w", format="mp4") as output:
            video, audio = output.add_stream_from_template(picture), output.add_stream_from_template(sound)
            for packet in packets:
                if packet.stream is sound:
                    if kept_sound == 0:
                        continue
                    kept_sound -= 1
                    packet.stream = audio
                else:
                    packet.stream = video
                output.mux(packet)
    return target.getvalue()


def _count_samples(source: Path | bytes) -> int:
    with _opened(source) as container:
        _, sound = _tracks(container, "mute")
        return sum(frame.samples for frame in container.decode(sound))


def _read(source: Path | bytes) -> bytes:
    return source if isinstance(source, bytes) else source.read_bytes()


def _opened(source: Path | bytes) -> InputContainer:
    try:
        return av.open(io.BytesIO(_read(source)), "r")
    except av.error.FFmpegError as problem:
        name = "the given bytes" if isinstance(source, bytes) else str(source)
        raise InvalidMedia(f"{name} cannot be opened as video ({problem}); give an MP4 clip") from problem


def _tracks(container: InputContainer, purpose: str) -> tuple[VideoStream, AudioStream]:
    if not container.streams.video:
        raise InvalidMedia(f"cannot {purpose} a file without a picture; give a clip made by `vision-bench prepare`")
    if not container.streams.audio:
        raise InvalidMedia(f"cannot {purpose} a clip without a sound track; choose a clip that has one")
    return container.streams.video[0], container.streams.audio[0]


def _encode_silence(output: OutputContainer, stream: AudioStream, sample_count: int) -> None:
    channels, chunk = stream.layout.nb_channels, 1024
    for start in range(0, sample_count, chunk):
        size = min(chunk, sample_count - start)
        frame = av.AudioFrame.from_ndarray(np.zeros((channels, size), np.float32), "fltp", stream.layout.name)
        frame.sample_rate, frame.pts = stream.rate, start
        output.mux(stream.encode(frame))
    output.mux(stream.encode(None))


def _free_box(number: int) -> bytes:
    return (12).to_bytes(4, "big") + b"free" + number.to_bytes(4, "big")
