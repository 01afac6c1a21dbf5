"""Small MP4 clips made in a few milliseconds, for tests that send or show them."""

from __future__ import annotations

import io
from pathlib import Path

import av
import numpy as np

RATE = 16_000


def tiny_clip(
    *, seconds: float = 1.0, colour: tuple[int, int, int] = (200, 40, 40), has_audio: bool = True, size: int = 64
) -> bytes:
    """An H.264 clip at 8 frames a second with a moving square, and a tone as AAC."""
    target = io.BytesIO()
    with av.open(target, "w", format="mp4") as out:
        video = out.add_stream("libx264", rate=8, options={"preset": "ultrafast"})
        video.width = video.height = size
        video.pix_fmt = "yuv420p"
        audio = out.add_stream("aac", rate=RATE, layout="mono") if has_audio else None
        for index in range(round(seconds * 8)):
            picture = np.full((size, size, 3), colour, np.uint8)
            picture[4 + index % 16 : 20 + index % 16, 8:24] = 255 - picture[0, 0]
            out.mux(video.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        out.mux(video.encode(None))
        if audio is not None:
            tone = np.sin(2 * np.pi * 440 * np.arange(round(seconds * RATE)) / RATE).astype(np.float32) * 0.3
            for start in range(0, len(tone), 1024):
                frame = av.AudioFrame.from_ndarray(tone[None, start : start + 1024], "fltp", "mono")
                frame.sample_rate, frame.pts = RATE, start
                out.mux(audio.encode(frame))
            out.mux(audio.encode(None))
    return target.getvalue()


def write_clips(folder: Path, count: int, **options: object) -> list[Path]:
    """``count`` clips of different colours, named as the cutter names them."""
    folder.mkdir(parents=True, exist_ok=True)
    clips = []
    for index in range(count):
        clip = folder / f"{index + 1:04d}_{index * 6:04d}-{index * 6 + 6:04d}.mp4"
        clip.write_bytes(tiny_clip(colour=(20 + index * 7 % 200, 90, 30), **options))  # type: ignore[arg-type]
        clips.append(clip)
    return clips
