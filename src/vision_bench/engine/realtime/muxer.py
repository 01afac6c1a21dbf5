"""Pictures to one fragmented MP4 that grows: a fragment a picture, each written when the next picture comes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import av
import numpy as np
from av.container import OutputContainer

from vision_bench.engine.realtime.conditioning import EngineFailure
from vision_bench.engine.realtime.picture import Planes

CODEC_OPTIONS: Mapping[str, object] = {"preset": "ultrafast", "tune": "zerolatency", "crf": "18"}
"""The original's. No B-frames; a key frame every 250 pictures."""
MUXER_OPTIONS = {"movflags": "frag_every_frame+empty_moov+default_base_moof"}
MAX_FPS = 1000


class _Written:
    """A file that only grows; what was written is taken away."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: bytes) -> int:
        """Called by the muxer."""
        self._data += data
        return len(data)

    def take(self) -> bytes:
        """Everything since the last time."""
        data = bytes(self._data)
        self._data.clear()
        return data


class FragmentMuxer:
    """One session's file."""

    def __init__(self, *, width: int, height: int, fps: float) -> None:
        """
        Raises:
            EngineFailure: a rate that no file can hold.
        """
        if fps > MAX_FPS:
            raise EngineFailure(f"fps must be at most {MAX_FPS}, got {fps:g}")
        self._file = _Written()
        self._container: OutputContainer = av.open(self._file, "w", format="mp4", options=MUXER_OPTIONS)
        self._stream = self._container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1001))
        self._stream.width, self._stream.height = width, height
        self._stream.pix_fmt = "yuv420p"
        self._stream.options = dict(CODEC_OPTIONS)
        # The rest of the machine belongs to whoever measures.
        self._stream.codec_context.thread_count = 1
        self._pictures = 0

    def add(self, picture: Planes) -> None:
        """Encode one picture."""
        frame = av.VideoFrame.from_ndarray(_stacked(picture), format="yuv420p")
        frame.pts = self._pictures
        self._pictures += 1
        for packet in self._stream.encode(frame):
            self._container.mux(packet)

    def take(self) -> bytes:
        """The bytes that are there and were not taken yet; the last picture added is not among them."""
        return self._file.take()

    def finish(self) -> bytes:
        """End the file; the rest of its bytes."""
        for packet in self._stream.encode():
            self._container.mux(packet)
        self._container.close()
        return self._file.take()


def _stacked(picture: Planes) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """(H * 3 / 2, W): the planes one under the other, as the library takes them."""
    height, width = picture.luma.shape
    stacked = np.empty((height * 3 // 2, width), np.uint8)
    stacked[:height] = picture.luma
    colours = stacked[height:].reshape(2, height // 2, width // 2)
    colours[0], colours[1] = picture.blue, picture.red
    return stacked
