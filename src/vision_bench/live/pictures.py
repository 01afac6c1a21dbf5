"""Decoded frames as JPEG, made on arrival: whoever asks later gets bytes that are there already.

Runs outside the event loop's thread. libav's encoder takes the decoder's own planes, without the way over RGB, and lets
other threads run meanwhile.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace
from numpy.typing import NDArray

QUANTIZER = 4
"""Of libav's scale from 2, the best, to 31. 4 is 38 kB for a lively picture of 640x360, about Pillow's quality 80."""


class JpegEncoder:
    """Makes JPEGs of one source's frames, whose size may change."""

    def __init__(self, *, quantizer: int = QUANTIZER) -> None:
        self._quantizer = quantizer
        self._codec: Any = None
        self._count = 0

    def encode(self, frame: av.VideoFrame) -> tuple[bytes, int, int]:
        """The picture upright, its width and its height.

        Raises:
            av.FFmpegError: a frame that cannot be encoded.
        """
        picture = _full_range(_upright(frame))
        width, height = picture.width, picture.height
        if self._codec is None or (self._codec.width, self._codec.height) != (width, height):
            self._codec = _encoder(width, height, self._quantizer)
        self._count += 1
        picture.pts, picture.time_base = self._count, Fraction(1, 1000)
        picture.pict_type = av.video.frame.PictureType.NONE
        return b"".join(bytes(packet) for packet in self._codec.encode(picture)), width, height


def _encoder(width: int, height: int, quantizer: int) -> Any:
    codec: Any = av.CodecContext.create("mjpeg", "w")
    codec.width, codec.height, codec.pix_fmt = width, height, "yuvj420p"
    codec.time_base = Fraction(1, 1000)
    codec.qmin = codec.qmax = quantizer
    codec.thread_count = 1  # with more, frames come out late
    return codec


def _full_range(frame: av.VideoFrame) -> av.VideoFrame:
    """JPEG's own planes: all 256 levels, and the matrix of BT.601."""
    is_full = frame.color_range == ColorRange.JPEG or frame.format.name.startswith("yuvj")
    is_709 = frame.colorspace == Colorspace.ITU709
    return frame.reformat(
        format="yuvj420p",
        src_color_range=ColorRange.JPEG if is_full else ColorRange.MPEG,
        dst_color_range=ColorRange.JPEG,
        src_colorspace=Colorspace.ITU709 if is_709 else Colorspace.ITU601,
        dst_colorspace=Colorspace.ITU601,
    )


def _upright(frame: av.VideoFrame) -> av.VideoFrame:
    """As it is to be seen: phones film lying on their side and say so."""
    turns = round(frame.rotation / 90) % 4
    if not turns:
        return frame
    turned: NDArray[np.uint8] = np.ascontiguousarray(np.rot90(frame.to_ndarray(format="rgb24"), turns))
    return av.VideoFrame.from_ndarray(turned)
