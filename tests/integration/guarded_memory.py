"""Run the compiled preprocessor on memory between pages that nobody may touch; the process dies if it strays.

    python tests/integration/guarded_memory.py

POSIX alone. Prints how many inputs came through.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vision_bench.preprocess import reference
from vision_bench.preprocess.fast import ImagePreprocessor, VideoPreprocessor
from vision_bench.preprocess.geometry import Size
from vision_bench.preprocess.spec import ImageSpec, VideoSpec

VIDEO = VideoSpec(
    processor="Qwen3VLVideoProcessor",
    patch_size=16,
    temporal_patch_size=2,
    merge_size=2,
    min_pixels=1024,
    max_pixels=150_000,
    mean=(0.5, 0.5, 0.5),
    std=(0.5, 0.5, 0.5),
    rescale_factor=1 / 255,
    cap_pixels_per_frame=False,
    max_video_tokens=768,
)
IMAGE = ImageSpec("Qwen2VLImageProcessor", 14, 2, 2, 784, 60_000, (0.48, 0.46, 0.41), (0.27, 0.26, 0.28), 1 / 255)
SIZES = [(70, 101), (64, 96), (64, 101), (70, 96), (33, 500), (9, 11), (1, 40), (300, 17), (512, 512)]
PROT_NONE, PROT_BOTH = 0, mmap.PROT_READ | mmap.PROT_WRITE


class Guarded:
    """Memory with a page before and a page behind it that cannot be read or written."""

    def __init__(self, size_bytes: int) -> None:
        pages = -(-size_bytes // mmap.PAGESIZE)
        self.memory = mmap.mmap(-1, (pages + 2) * mmap.PAGESIZE)
        self.size_bytes = size_bytes
        self.pages = pages
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        library = ctypes.CDLL(None, use_errno=True)
        for page in (0, pages + 1):
            address = ctypes.c_void_p(start + page * mmap.PAGESIZE)
            if library.mprotect(address, ctypes.c_size_t(mmap.PAGESIZE), PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")

    def array(self, shape: tuple[int, ...], dtype: Any, *, at_the_end: bool) -> NDArray[Any]:
        """An array that begins behind the first guard, or ends before the last."""
        spare = self.pages * mmap.PAGESIZE - self.size_bytes
        offset = mmap.PAGESIZE + (spare if at_the_end else 0)
        count = int(np.prod(shape))
        return np.frombuffer(self.memory, dtype, count=count, offset=offset).reshape(shape)


def run(height: int, width: int, *, at_the_end: bool) -> None:
    """A clip and an image of one size, read from and written to guarded memory."""
    pixels = np.random.default_rng(height * width).integers(0, 256, (3, height, width, 3), np.uint8)
    frames = Guarded(pixels.nbytes).array(pixels.shape, np.uint8, at_the_end=at_the_end)
    frames[:] = pixels
    grid = VIDEO.grid(3, Size(height, width))
    shape = (grid.patches, VIDEO.patch_values)
    out = Guarded(4 * shape[0] * shape[1]).array(shape, np.float32, at_the_end=at_the_end)
    VideoPreprocessor(VIDEO, compiled=True)(frames, out=out)
    if out.tobytes() != reference.video(pixels, VIDEO).pixel_values.tobytes():
        raise AssertionError(f"{width}x{height}: other bytes")
    image = Guarded(pixels[0].nbytes).array(pixels[0].shape, np.uint8, at_the_end=at_the_end)
    image[:] = pixels[0]
    shape = (IMAGE.grid(Size(height, width)).patches, IMAGE.patch_values)
    out = Guarded(4 * shape[0] * shape[1]).array(shape, np.float32, at_the_end=at_the_end)
    ImagePreprocessor(IMAGE, compiled=True)(image, out=out)
    if out.tobytes() != reference.image(pixels[0], IMAGE).pixel_values.tobytes():
        raise AssertionError(f"{width}x{height}: other bytes")


def main() -> int:
    """All sizes, at both ends."""
    for height, width in SIZES:
        for at_the_end in (False, True):
            run(height, width, at_the_end=at_the_end)
    print(2 * len(SIZES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
