"""One H.264 and AAC file, written frame by frame, with a cheap black lead made of repeated packets."""

from __future__ import annotations

from fractions import Fraction
from io import BytesIO
from pathlib import Path
from types import TracebackType

import av
import numpy as np
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.packet import Packet
from av.video.stream import VideoStream
from numpy.typing import NDArray

from vision_bench.media.broadcast.genres import Genre
from vision_bench.media.broadcast.picture import Canvas
from vision_bench.media.broadcast.plan import SAMPLE_RATE

X264 = {"preset": "veryfast", "crf": "21"}
# Fixed, because the number of threads changes the bytes and the number of cores must not.
ENCODER_THREADS = 4
GOP_FRAMES, B_FRAMES = 250, 2
AUDIO_BITS_PER_SECOND = 128_000
AAC_FRAME = 1024

BT709, SMPTE170M, LIMITED_RANGE = 1, 6, 1


class BroadcastFile:
    """The file being written. Give it frames in order, sound in order, and close it.

    ``lead_frames`` of black and silence come first without being encoded one by one.
    """

    def __init__(self, path: Path, genre: Genre, *, lead_frames: int = 0) -> None:
        self._container = av.open(str(path), "w", format="mp4", options={"movflags": "+faststart"})
        self._video = _add_video(self._container, genre)
        self._audio = _add_audio(self._container)
        self._tick = 1 / genre.fps
        self._frame = self._sample = 0
        if lead_frames:
            self._write_lead(genre, lead_frames)

    def __enter__(self) -> BroadcastFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._container.mux(self._video.encode(None))
            self._container.mux(self._audio.encode(None))
        self._container.close()

    @property
    def next_sample(self) -> int:
        """The first sample that has not been given yet: the lead brings its own."""
        return self._sample

    def add_frame(self, buffer: NDArray[np.uint8]) -> None:
        """Append one frame: planar 4:2:0, (H * 3 / 2, W); copied, so the buffer may be drawn over."""
        frame = av.VideoFrame.from_ndarray(buffer, format="yuv420p")
        frame.pts, frame.time_base = self._frame, self._tick
        self._container.mux(self._video.encode(frame))
        self._frame += 1

    def add_sound(self, samples: NDArray[np.float32]) -> None:
        """Append (N,) mono samples in [-1, 1] at 48 kHz, on both channels."""
        frame = av.AudioFrame.from_ndarray(np.stack([samples, samples]), format="fltp", layout="stereo")
        frame.sample_rate, frame.pts, frame.time_base = SAMPLE_RATE, self._sample, Fraction(1, SAMPLE_RATE)
        self._container.mux(self._audio.encode(frame))
        self._sample += len(samples)

    def _write_lead(self, genre: Genre, lead_frames: int) -> None:
        """Black that costs next to nothing: two groups of pictures are encoded once and muxed again and again.

        Two, because consecutive key frames must differ in their ``idr_pic_id``, which x264 makes 0, 1, 0, 1…
        What is left after whole pairs is encoded as usual.
        """
        canvas = Canvas(genre)
        canvas.fill(16)
        pair = 2 * GOP_FRAMES
        repeats = lead_frames // pair
        if repeats:
            packets = _black_packets(genre, canvas, pair)
            for repeat in range(repeats):
                for packet in packets:
                    self._mux_copy(packet, repeat * pair)
            self._frame = repeats * pair
        while self._frame < lead_frames:
            self.add_frame(canvas.buffer)
        self._write_silence(int(lead_frames / genre.fps))

    def _write_silence(self, seconds: int) -> None:
        """Silence up to the last whole multiple of 8 seconds, where whole AAC frames meet whole seconds."""
        frames = seconds // 8 * 8 * SAMPLE_RATE // AAC_FRAME
        if not frames:
            return
        silent = _silent_packet()
        for number in range(frames):
            copy = Packet(silent)
            copy.stream, copy.time_base = self._audio, Fraction(1, SAMPLE_RATE)
            # The encoder's first packet lies one frame before the sound that it was given.
            copy.pts = copy.dts = (number - 1) * AAC_FRAME
            copy.duration, copy.is_keyframe = AAC_FRAME, True
            self._container.mux(copy)
        self._sample = frames * AAC_FRAME

    def _mux_copy(self, packet: Packet[VideoStream], later: int) -> None:
        copy = Packet(bytes(packet))
        copy.stream, copy.time_base = self._video, self._tick
        copy.pts, copy.dts, copy.duration = (packet.pts or 0) + later, (packet.dts or 0) + later, 1
        copy.is_keyframe = packet.is_keyframe
        self._container.mux(copy)


def _add_video(container: OutputContainer, genre: Genre) -> VideoStream:
    stream = container.add_stream("libx264", rate=genre.fps, options=X264)
    stream.width, stream.height, stream.pix_fmt = genre.width, genre.height, "yuv420p"
    stream.time_base = 1 / genre.fps
    context = stream.codec_context
    context.time_base = 1 / genre.fps
    context.thread_count = ENCODER_THREADS
    context.gop_size, context.max_b_frames = GOP_FRAMES, B_FRAMES
    matrix = BT709 if genre.is_hd else SMPTE170M
    context.colorspace = context.color_primaries = context.color_trc = matrix
    context.color_range = LIMITED_RANGE
    return stream


def _add_audio(container: OutputContainer) -> AudioStream:
    stream = container.add_stream("aac", rate=SAMPLE_RATE, layout="stereo")
    stream.bit_rate = AUDIO_BITS_PER_SECOND
    return stream


def _black_packets(genre: Genre, canvas: Canvas, count: int) -> list[Packet[VideoStream]]:
    """``count`` black frames as packets of an encoder set up like the file's own."""
    with av.open(BytesIO(), "w", format="mp4") as scratch:
        stream = _add_video(scratch, genre)
        packets: list[Packet[VideoStream]] = []
        for number in range(count):
            frame = av.VideoFrame.from_ndarray(canvas.buffer, format="yuv420p")
            frame.pts, frame.time_base = number, 1 / genre.fps
            packets += stream.encode(frame)
        packets += stream.encode(None)
        for packet in packets:
            packet.time_base = 1 / genre.fps
    return packets


def _silent_packet() -> bytes:
    """One AAC frame of silence from an encoder that has heard nothing else."""
    with av.open(BytesIO(), "w", format="mp4") as scratch:
        stream = _add_audio(scratch)
        silence = np.zeros((2, 8 * AAC_FRAME), np.float32)
        frame = av.AudioFrame.from_ndarray(silence, format="fltp", layout="stereo")
        frame.sample_rate, frame.pts = SAMPLE_RATE, 0
        packets = [bytes(packet) for packet in stream.encode(frame)]
    return packets[-1]
