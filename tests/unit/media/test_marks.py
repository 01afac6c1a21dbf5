"""media.marks: cells in the pixels, through the encoder and back."""

from __future__ import annotations

import io

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from vision_bench.media.marks import draw_marks, has_room, read_marks, strip_rows
from vision_bench.wire.realtime.marks import marks_of

SIZES = [(832, 480), (256, 192), (128, 128), (400, 240)]


def noise(width: int, height: int) -> NDArray[np.uint8]:
    """A picture of nothing."""
    return np.random.default_rng(3).integers(0, 256, (height, width), dtype=np.uint8)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_drawn_marks_are_read(width: int, height: int) -> None:
    """At every size that has room; what lies under the strip stays as it was."""
    luma = noise(width, height)
    before = luma.copy()
    draw_marks(luma, marks_of(5, 0, ["a"]))
    assert read_marks(luma) == marks_of(5, 0, ["a"])
    assert (luma[strip_rows(width) :] == before[strip_rows(width) :]).all()


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_picture_without_marks_has_none(width: int, height: int) -> None:
    """Noise is not taken for marks."""
    assert read_marks(noise(width, height)) is None


@pytest.mark.parametrize(("width", "height"), [(64, 48), (7, 400), (832, 16)])
def test_a_small_picture_has_no_room(width: int, height: int) -> None:
    """Nothing is read from it."""
    assert not has_room(width, height)
    assert read_marks(noise(width, height)) is None


def test_marks_survive_a_coarse_encoder() -> None:
    """H.264 at quality 40, where the picture itself is hardly to be known."""
    output = io.BytesIO()
    with av.open(output, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=16)
        stream.width, stream.height, stream.pix_fmt = 256, 192, "yuv420p"
        stream.options = {"crf": "40", "preset": "ultrafast"}
        for number in range(10):
            planes = np.full((288, 256), 128, np.uint8)
            planes[:192] = noise(256, 192)
            draw_marks(planes[:192], marks_of(number, 0, ["a"]))
            container.mux(stream.encode(av.VideoFrame.from_ndarray(planes, format="yuv420p")))
        container.mux(stream.encode())
    output.seek(0)
    with av.open(output) as container:
        read = [read_marks(frame.to_ndarray(format="yuv420p")[:192]) for frame in container.decode(video=0)]
    assert read == [marks_of(number, 0, ["a"]) for number in range(10)]
