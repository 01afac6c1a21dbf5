"""Small clips with a known picture and sound, made in memory. Seconds of them cost milliseconds to make."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from fractions import Fraction

import av
import numpy as np

WIDTH, HEIGHT, RATE = 320, 240, 25
SOUND_RATE = 44_100


def make_clip(*, seconds: int = 6, picture: int = 0, tone_hz: float | None = 440.0) -> bytes:
    """An MP4, 320x240 at 25 fps, H.264, with AAC unless ``tone_hz`` is None (0 is a silent track).

    Two values of ``picture`` look different from the first frame on; the sound depends on ``tone_hz`` alone.
    """
    target = io.BytesIO()
    with av.open(target, "w", format="mp4") as output:
        video = output.add_stream("libx264", rate=RATE, options={"preset": "ultrafast", "crf": "28"})
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        audio = None if tone_hz is None else output.add_stream("aac", rate=SOUND_RATE, layout="mono")
        for index, pixels in enumerate(pictures(seconds * RATE, picture)):
            frame = av.VideoFrame.from_ndarray(pixels, "rgb24")
            frame.pts, frame.time_base = index, Fraction(1, RATE)
            output.mux(video.encode(frame))
        output.mux(video.encode(None))
        if audio is not None:
            for start in range(0, seconds * SOUND_RATE, 1024):
                samples = tone(start, min(1024, seconds * SOUND_RATE - start), tone_hz or 0.0)
                sound = av.AudioFrame.from_ndarray(samples[None, :], "fltp", "mono")
                sound.sample_rate, sound.pts, sound.time_base = SOUND_RATE, start, Fraction(1, SOUND_RATE)
                output.mux(audio.encode(sound))
            output.mux(audio.encode(None))
    return target.getvalue()


def pictures(count: int, picture: int) -> Iterator[np.ndarray]:
    """Stripes that move, in a colour and at a slant of their own; (240, 320, 3) uint8."""
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    colour = np.array([(picture * 67 + 200) % 256, (picture * 131 + 40) % 256, (picture * 29 + 90) % 256])
    for index in range(count):
        stripes = ((columns + rows * (picture % 5) + index * 4) // 32) % 2
        yield (stripes[:, :, None] * colour + (1 - stripes)[:, :, None] * (255 - colour)).astype(np.uint8)


def tone(start: int, count: int, hz: float) -> np.ndarray:
    """``count`` samples of a sine from sample ``start`` on; (N,) float32."""
    return (0.3 * np.sin(2 * np.pi * hz * np.arange(start, start + count) / SOUND_RATE)).astype(np.float32)


def make_wav(*, seconds: int = 2, hz: float = 440.0) -> bytes:
    """Mono 16-bit PCM at 44.1 kHz."""
    target = io.BytesIO()
    with wave.open(target, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SOUND_RATE)
        file.writeframes((tone(0, seconds * SOUND_RATE, hz) * 32767).astype("<i2").tobytes())
    return target.getvalue()
