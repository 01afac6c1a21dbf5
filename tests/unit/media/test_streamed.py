"""A film that came piece by piece: at which byte each picture was whole."""

from __future__ import annotations

import io
from pathlib import Path

import av
import numpy as np
import pytest

from vision_bench.errors import InvalidMedia
from vision_bench.media.streamed import decode_stream

FRAGMENTS = "frag_every_frame+empty_moov+default_base_moof"


def streamed(pictures: int = 6, *, width: int = 64, height: int = 48) -> tuple[bytes, list[int]]:
    """A fragmented film of ever brighter pictures, and its size after each picture was handed to the muxer."""
    buffer = io.BytesIO()
    sizes = []
    with av.open(buffer, "w", format="mp4", options={"movflags": FRAGMENTS}) as container:
        stream = container.add_stream("libx264", rate=16, options={"tune": "zerolatency", "preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(pictures):
            frame = av.VideoFrame.from_ndarray(np.full((height, width, 3), 20 + 30 * number, np.uint8), format="rgb24")
            for packet in stream.encode(frame):
                container.mux(packet)
            sizes.append(buffer.tell())
        for packet in stream.encode():
            container.mux(packet)
    return buffer.getvalue(), sizes


def test_a_picture_is_whole_with_the_bytes_that_end_it(tmp_path: Path) -> None:
    """The muxer writes a picture when the next one comes: each ends before the stream was as long as after the next."""
    data, sizes = streamed()
    (tmp_path / "a.mp4").write_bytes(data)
    pictures = list(decode_stream(tmp_path / "a.mp4"))
    assert [round(picture.pts_seconds * 16) for picture in pictures] == [0, 1, 2, 3, 4, 5]
    ends = [picture.end_byte for picture in pictures]
    assert ends == sorted(set(ends))
    assert all(end <= size for end, size in zip(ends, sizes[1:], strict=False))
    assert ends[-1] <= len(data)
    assert len({picture.digest for picture in pictures}) == 6
    assert {(picture.width, picture.height) for picture in pictures} == {(64, 48)}
    assert pictures[5].luma.shape == (48, 64)


def test_equal_pictures_have_one_digest(tmp_path: Path) -> None:
    """The digest is of the pixels: the same film twice gives the same ones."""
    data, _ = streamed(3)
    (tmp_path / "a.mp4").write_bytes(data)
    (tmp_path / "b.mp4").write_bytes(data)
    first, second = ([p.digest for p in decode_stream(tmp_path / name)] for name in ("a.mp4", "b.mp4"))
    assert first == second


def test_a_stream_that_was_cut_off_gives_what_is_there(tmp_path: Path) -> None:
    """Without its end, at the boundary after the fourth picture was handed over: three pictures."""
    data, sizes = streamed()
    (tmp_path / "a.mp4").write_bytes(data[: sizes[3]])
    assert len(list(decode_stream(tmp_path / "a.mp4"))) == 3


def test_what_is_no_film(tmp_path: Path) -> None:
    """Named as such."""
    (tmp_path / "a.mp4").write_bytes(b"x" * 100)
    with pytest.raises(InvalidMedia):
        list(decode_stream(tmp_path / "a.mp4"))
