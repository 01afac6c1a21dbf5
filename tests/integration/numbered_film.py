"""A film whose every frame says its own number, and whose sound beeps when chosen frames appear."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

BITS = 12
BAR_PIXELS = 16
WIDTH, HEIGHT = BITS * BAR_PIXELS, 64
RATE = 48_000
BEEP_EVERY, BEEP_FIRST = 10, 4
BEEP_SECONDS = 0.06
BEEP_HZ = 1500


def constant_times(rate: Fraction, seconds: float) -> list[Fraction]:
    """When each frame is shown."""
    return [index / rate for index in range(int(seconds * rate))]


def write_film(
    path: Path, times: Sequence[Fraction], *, container: str = "mp4", offset: Fraction = Fraction(0)
) -> Path:
    """A film with B frames, open groups and a key frame every 50 frames.

    Args:
        times: seconds of each frame from 0.
        offset: added to every time in the file, picture and sound alike.
    """
    time_base = Fraction(1, 90_000)
    shift = round(offset / time_base)
    with av.open(str(path), "w", format=container) as out:
        picture: Any = out.add_stream("libx264", rate=30, options={"preset": "veryfast", "x264-params": "open-gop=1"})
        picture.width, picture.height, picture.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        picture.codec_context.time_base = time_base
        picture.codec_context.gop_size, picture.codec_context.max_b_frames = 50, 3
        sound: Any = out.add_stream("aac", rate=RATE, layout="mono")
        for number, seconds in enumerate(times):
            frame = av.VideoFrame.from_ndarray(bars(number), "gray").reformat(format="yuv420p")
            frame.pts, frame.time_base = round(seconds / time_base) + shift, time_base
            out.mux(picture.encode(frame))
        out.mux(picture.encode(None))
        samples = beeps(times)
        for start in range(0, samples.size, 1024):
            chunk = av.AudioFrame.from_ndarray(samples[None, start : start + 1024], "fltp", "mono")
            chunk.sample_rate, chunk.pts, chunk.time_base = RATE, start + round(offset * RATE), Fraction(1, RATE)
            out.mux(sound.encode(chunk))
        out.mux(sound.encode(None))
    return path


def bars(number: int) -> np.ndarray:
    """The number in binary, highest bit left: white bars are ones."""
    row = np.repeat([235 if number >> bit & 1 else 16 for bit in reversed(range(BITS))], BAR_PIXELS)
    return np.tile(row.astype(np.uint8), (HEIGHT, 1))


def beeps(times: Sequence[Fraction]) -> np.ndarray:
    """Silence with a short tone from the moment that every tenth frame appears."""
    samples = np.zeros(int((times[-1] + Fraction(1, 10)) * RATE), np.float32)
    tone = 0.6 * np.sin(2 * np.pi * BEEP_HZ * np.arange(int(BEEP_SECONDS * RATE)) / RATE)
    for seconds in times[BEEP_FIRST::BEEP_EVERY]:
        at = round(seconds * RATE)
        length = min(tone.size, samples.size - at)
        samples[at : at + length] = tone[:length]
    return samples


def read_numbers(path: Path) -> tuple[list[int], list[float]]:
    """Number and time in seconds of every frame of a clip."""
    numbers, seconds = [], []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            row = frame.to_ndarray(format="gray")[HEIGHT // 4 : -HEIGHT // 4].mean(axis=0)
            centres = row.reshape(BITS, BAR_PIXELS)[:, 4:-4].mean(axis=1)
            numbers.append(int("".join("1" if value > 125 else "0" for value in centres), 2))
            seconds.append(float(frame.time))
    return numbers, seconds


def read_beeps(path: Path) -> list[float]:
    """Seconds at which a beep starts: where 2 ms of sound become loud after 30 quiet ones."""
    with av.open(str(path)) as container:
        parts = [(float(frame.time), frame.to_ndarray()[0]) for frame in container.decode(audio=0)]
    start = parts[0][0]
    samples = np.concatenate([part for _, part in parts])
    step = RATE // 500
    loud = np.abs(samples[: samples.size // step * step].reshape(-1, step)).max(axis=1) > 0.2
    found = [index for index in np.flatnonzero(loud) if not loud[max(0, index - 15) : index].any()]
    return [start + index * step / RATE for index in found]
