"""JPEGs of decoded frames: the right colours, size and direction."""

from __future__ import annotations

import io

import av
import numpy as np
import pytest
from av.video.reformatter import ColorRange, Colorspace
from PIL import Image

from vision_bench.live.jpeg import jpeg_size
from vision_bench.live.pictures import JpegEncoder

COLOURS = [(0, 0, 0), (255, 255, 255), (220, 30, 40), (20, 200, 60), (30, 60, 210), (128, 128, 128)]


def _bars(*, colorspace: Colorspace, color_range: ColorRange) -> av.VideoFrame:
    picture = np.repeat(np.array(COLOURS, np.uint8)[None, :, :], 48, axis=0).repeat(16, axis=1)
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
    made = frame.reformat(format="yuv420p", dst_colorspace=colorspace, dst_color_range=color_range)
    made.colorspace, made.color_range = colorspace, color_range
    return made


def _read(jpeg: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB")).astype(int)


@pytest.mark.parametrize("colorspace", [Colorspace.ITU601, Colorspace.ITU709])
@pytest.mark.parametrize("color_range", [ColorRange.MPEG, ColorRange.JPEG])
def test_colours_are_those_of_the_source(colorspace: Colorspace, color_range: ColorRange) -> None:
    """Six bars come back within 8 levels of 255, whatever matrix and range the frame has."""
    jpeg, width, height = JpegEncoder().encode(_bars(colorspace=colorspace, color_range=color_range))
    assert (width, height) == (96, 48) == jpeg_size(jpeg)
    middles = _read(jpeg)[24, 8::16]
    assert np.abs(middles - np.array(COLOURS)).max() <= 8


def test_the_size_may_change() -> None:
    """Each picture has its own frame's size, odd ones too."""
    encoder = JpegEncoder()
    for width, height in ((64, 48), (32, 24), (33, 25), (64, 48)):
        frame = av.VideoFrame.from_ndarray(np.full((height, width, 3), 90, np.uint8), format="rgb24")
        jpeg, *size = encoder.encode(frame.reformat(format="yuv420p"))
        assert tuple(size) == (width, height) == jpeg_size(jpeg)
        assert abs(_read(jpeg).mean() - 90) < 3
