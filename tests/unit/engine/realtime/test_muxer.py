"""engine.realtime.muxer: the boxes of the file, when they come, and what a player makes of them."""

from __future__ import annotations

import io
from fractions import Fraction

import av
import numpy as np
import pytest

from vision_bench.engine.realtime.conditioning import EngineFailure
from vision_bench.engine.realtime.muxer import FragmentMuxer
from vision_bench.engine.realtime.picture import Planes

WIDTH, HEIGHT = 64, 48


def picture(number: int) -> Planes:
    """Another grey for each number."""
    grey = np.full((HEIGHT, WIDTH), 16 + number % 200, np.uint8)
    return Planes(grey, grey[::2, ::2], grey[::2, ::2])


def boxes(data: bytes) -> list[str]:
    """Names of the boxes in order."""
    names, at = [], 0
    while at < len(data):
        names.append(data[at + 4 : at + 8].decode())
        at += int.from_bytes(data[at : at + 4], "big")
    return names


def film(counts: list[int], fps: float = 16) -> list[bytes]:
    """The bytes taken after each of so many pictures, and the end's."""
    muxer = FragmentMuxer(width=WIDTH, height=HEIGHT, fps=fps)
    taken, number = [], 0
    for count in counts:
        for _ in range(count):
            muxer.add(picture(number))
            number += 1
        taken.append(muxer.take())
    return [*taken, muxer.finish()]


def test_a_fragment_a_picture_each_one_picture_late() -> None:
    """Of 9, 12, 12 pictures 8, 12, 12 fragments; the head comes once, the last picture with the end."""
    first, second, third, trailer = film([9, 12, 12])
    assert boxes(first) == ["ftyp", "moov", *["moof", "mdat"] * 8]
    assert boxes(second) == boxes(third) == ["moof", "mdat"] * 12
    assert boxes(trailer) == ["moof", "mdat", "mfra"]


def test_all_pictures_are_there_in_order_with_rising_times() -> None:
    """And a film without its end, as after a stop, decodes to all pictures but one."""
    parts = film([9, 12])
    for data, count in ((b"".join(parts), 21), (b"".join(parts[:-1]), 20)):
        with av.open(io.BytesIO(data)) as container:
            frames = list(container.decode(video=0))
        greys = [int(frame.to_ndarray(format="yuv420p")[0, 0]) for frame in frames]
        assert greys == pytest.approx([16 + number for number in range(count)], abs=2)
        assert [frame.time for frame in frames] == pytest.approx([number / 16 for number in range(count)])


def test_key_frames_are_250_pictures_apart_and_nothing_comes_out_of_order() -> None:
    """As in the original: a stream cannot be joined in between."""
    with av.open(io.BytesIO(b"".join(film([510])))) as container:
        stream = container.streams.video[0]
        packets = [packet for packet in container.demux(stream) if packet.size]
        assert stream.codec_context.pix_fmt == "yuv420p"
        assert stream.codec_context.profile in ("Baseline", "Constrained Baseline")
    assert [number for number, packet in enumerate(packets) if packet.is_keyframe] == [0, 250, 500]
    assert all(packet.pts == packet.dts for packet in packets)


@pytest.mark.parametrize(("fps", "rate"), [(15.5, Fraction(31, 2)), (24.0, Fraction(24)), (29.97, Fraction(2997, 100))])
def test_the_rate_is_written_into_the_file(fps: float, rate: Fraction) -> None:
    """Fractions too."""
    with av.open(io.BytesIO(b"".join(film([9], fps)))) as container:
        frames = list(container.decode(video=0))
    assert frames[1].pts * frames[1].time_base == pytest.approx(1 / rate, rel=0.01)


def test_a_rate_that_no_file_can_hold_is_refused() -> None:
    """Before anything is opened."""
    with pytest.raises(EngineFailure, match="fps must be at most 1000, got 1e"):
        FragmentMuxer(width=WIDTH, height=HEIGHT, fps=1e12)
