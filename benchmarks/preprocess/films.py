"""What the benchmarks against vLLM share: a film made of frames, and a line of progress."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from fractions import Fraction

import av
import numpy as np
from numpy.typing import NDArray


def mp4(frames: Iterable[NDArray[np.uint8]], rate: int) -> bytes:
    """H.264 without sound; frames of (H, W, 3) uint8."""
    target = io.BytesIO()
    with av.open(target, "w", format="mp4") as output:
        video = output.add_stream("libx264", rate=rate, options={"preset": "ultrafast"})
        for index, pixels in enumerate(frames):
            if index == 0:
                video.height, video.width, video.pix_fmt = *pixels.shape[:2], "yuv420p"
            frame = av.VideoFrame.from_ndarray(pixels, "rgb24")
            frame.pts, frame.time_base = index, Fraction(1, rate)
            output.mux(video.encode(frame))
        output.mux(video.encode(None))
    return target.getvalue()


def say(line: str) -> None:
    """Progress."""
    print(line, file=sys.stderr, flush=True)
