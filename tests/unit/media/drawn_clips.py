"""Clips encoded in memory from given frames and samples, in milliseconds."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import av
import numpy as np

RATE = 16_000


def drawn_clip(
    frames: Sequence[np.ndarray],
    *,
    fps: int = 24,
    samples: np.ndarray | None = None,
    turn: int | None = None,
    container: str = "mp4",
    options: dict[str, str] | None = None,
) -> bytes:
    """H.264 of (H, W, 3) frames, and AAC of (N,) mono samples at 16 kHz.

    ``turn`` is written as display rotation, degrees counter-clockwise.
    """
    target = io.BytesIO()
    with av.open(target, "w", format=container) as out:
        video: Any = out.add_stream("libx264", rate=fps, options=options or {"preset": "ultrafast", "qp": "12"})
        video.height, video.width = frames[0].shape[:2]
        video.pix_fmt = "yuv420p"
        if turn is not None:
            video.set_display_rotation(turn)
        audio: Any = out.add_stream("aac", rate=RATE, layout="mono") if samples is not None else None
        for frame in frames:
            out.mux(video.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), "rgb24")))
        out.mux(video.encode(None))
        if samples is not None:
            for start in range(0, len(samples), 1024):
                piece = np.ascontiguousarray(samples[None, start : start + 1024], np.float32)
                chunk = av.AudioFrame.from_ndarray(piece, "fltp", "mono")
                chunk.sample_rate, chunk.pts = RATE, start
                out.mux(audio.encode(chunk))
            out.mux(audio.encode(None))
    return target.getvalue()


def ramp(count: int, *, width: int = 64, height: int = 48) -> list[np.ndarray]:
    """Grey frames, each ten levels brighter than the last, so that a frame tells its own number."""
    return [np.full((height, width, 3), 10 + 10 * number, np.uint8) for number in range(count)]


def number_of(frame: np.ndarray) -> int:
    """Which frame of `ramp` this is."""
    return round((float(frame.mean()) - 10) / 10)


def tone(hertz: float, seconds: float, *, level: float = 0.3) -> np.ndarray:
    """A sine as (N,) float32 at 16 kHz."""
    return (level * np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)
