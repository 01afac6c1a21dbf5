"""A film that came piece by piece: each picture with the byte of the stream at which it was whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vision_bench.media.container import READING_ENDS, open_media


class StreamedPicture(NamedTuple):
    """One decoded picture."""

    pts_seconds: float
    end_byte: int
    """Bytes of the stream, from its start, that had to be there for it."""
    width: int
    height: int
    digest: str
    """Of its pixels."""
    luma: NDArray[np.uint8]
    """(H, W); good until the next picture is asked for."""


def decode_stream(source: Path) -> Iterator[StreamedPicture]:
    """The pictures of a fragmented MP4 in the order of decoding; a stream that was cut off gives those that are there.

    Meant for streams without B-frames, whose pictures leave the decoder one a packet.

    Raises:
        InvalidMedia: nothing in it can be read.
    """
    with open_media(source) as container:
        stream = container.streams.video[0]
        end_byte = 0
        try:
            for packet in container.demux(stream):
                if packet.pos is not None and packet.size:
                    end_byte = max(end_byte, packet.pos + packet.size)
                for frame in packet.decode():
                    yield _picture(frame, end_byte)
        except READING_ENDS:
            return


def _picture(frame: Any, end_byte: int) -> StreamedPicture:
    planes = frame.to_ndarray(format="yuv420p")
    digest = hashlib.blake2b(planes.data, digest_size=8).hexdigest()
    seconds = float(frame.pts * frame.time_base) if frame.pts is not None else 0.0
    return StreamedPicture(seconds, end_byte, frame.width, frame.height, digest, planes[: frame.height])
