"""Gemma 4's frames: each enlarged or shrunk to as many tokens as it may have, cut row by row, padded to the budget.

Frames do not touch each other, so an image is a clip of one frame. Resizing is torch's, as for the Qwen processors
(:mod:`vision_bench.preprocess.resample`); a patch here is rows of packed pixels, red, green and blue side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vision_bench.errors import InvalidRequest
from vision_bench.preprocess import reference
from vision_bench.preprocess.buffers import BufferPool
from vision_bench.preprocess.equivalence import Unequal
from vision_bench.preprocess.fast import POOL_BYTES, VideoPreprocessor
from vision_bench.preprocess.geometry import Size, budget_target
from vision_bench.preprocess.reference import Frames, Patches
from vision_bench.preprocess.spec import (
    IMAGE_FILES,
    VIDEO_FILES,
    Config,
    VideoSpec,
    check_steps,
    positive,
    processor_name,
    read_settings,
    rescale_factor,
    triple,
)

PROCESSORS = {"image": "Gemma4ImageProcessor", "video": "Gemma4VideoProcessor"}
NORMALISES = {"image": False, "video": True}
"""What each class does where the file says nothing. With a mean of 0 and a deviation of 1 it is the last bit only."""
BUDGETS = (70, 140, 280, 560, 1120)
"""The stock classes refuse any other ``max_soft_tokens``."""
NOWHERE = -1
"""Both coordinates of a patch that fills up the budget."""


class GemmaPatches(NamedTuple):
    """What the encoder takes, padded to the budget."""

    pixel_values: NDArray[np.float32]
    """(T, patches of the budget, D): row by row from the top left; D is rows, columns, then red, green, blue."""
    positions: NDArray[np.int64]
    """(T, patches of the budget, 2): column and row of each patch; -1 where there is none."""
    tokens: int
    """Visual tokens that one frame becomes."""

    def flat(self) -> Patches:
        """All rows one below another, and (4,) frames, patches down, patches across, tokens: to compare two of them.

        Raises:
            Unequal: places that are not those of whole rows from the top left, the rest of the budget nowhere.
        """
        frames, rows, columns = self.pixel_values.shape
        across, down = (int(most) + 1 for most in self.positions[0].max(axis=0))
        if not np.array_equal(self.positions, _positions(frames, rows, down, across)):
            raise Unequal(f"the places of {frames} frames of {across}x{down} patches are not row by row")
        return Patches(self.pixel_values.reshape(-1, columns), np.array([frames, down, across, self.tokens]))


@dataclass(frozen=True, slots=True)
class GemmaSpec:
    """What a checkpoint's own file says about frames."""

    processor: str
    patch_size: int
    """Pixels a side."""
    pooling: int
    """Patches a side of one token."""
    max_tokens: int
    """Of one frame or image."""
    rescale_factor: float
    mean: tuple[float, float, float] | None
    """Of the values divided by 255; None where nothing is normalised."""
    std: tuple[float, float, float] | None

    @classmethod
    def from_config(cls, config: str | Path | Config, part: Literal["image", "video"]) -> Self:
        """Read a checkpoint's folder, its processor's file, or what is in it.

        Raises:
            InvalidRequest: a missing or unusable file or setting, or a processor that is not Gemma 4's.
        """
        files = IMAGE_FILES if part == "image" else VIDEO_FILES
        found = read_settings(config, files, f"{part}_processor")
        name = processor_name(found, f"{part}_processor_type", None, (PROCESSORS[part],))
        check_steps(found, "do_resize", "do_rescale")
        budget = positive(found, "max_soft_tokens")
        if budget not in BUDGETS:
            raise InvalidRequest(f"max_soft_tokens is {budget}; it must be one of {', '.join(map(str, BUDGETS))}")
        normalises = found.get("do_normalize", NORMALISES[part])
        return cls(
            processor=name,
            patch_size=positive(found, "patch_size"),
            pooling=positive(found, "pooling_kernel_size"),
            max_tokens=budget,
            rescale_factor=rescale_factor(found),
            mean=triple(found, "image_mean") if normalises else None,
            std=triple(found, "image_std", positive=True) if normalises else None,
        )

    @property
    def max_patches(self) -> int:
        """Rows of ``pixel_values`` of each frame."""
        return self.max_tokens * self.pooling**2

    @property
    def patch_values(self) -> int:
        """Columns of ``pixel_values``."""
        return 3 * self.patch_size**2

    def target(self, size: Size) -> Size:
        """The size that a frame of ``size`` is given."""
        return budget_target(size, patch_size=self.patch_size, pooling=self.pooling, max_tokens=self.max_tokens)

    def levels(self) -> NDArray[np.float32]:
        """(D,) how many 8-bit levels a difference of 1 is, in each column."""
        back = np.float32(1.0 / self.rescale_factor)
        return np.tile(np.array(self.std or (1, 1, 1), np.float32) * back, self.patch_size**2)

    def table(self) -> NDArray[np.float32]:
        """(3, 256) what each 8-bit value of red, green and blue becomes."""
        values = np.tile(np.arange(256, dtype=np.float32), (3, 1))
        if self.mean is None or self.std is None:
            return values * np.float32(self.rescale_factor)
        back = np.float32(1.0 / self.rescale_factor)
        shift, scale = (np.array(one, np.float32) * back for one in (self.mean, self.std))
        normalised: NDArray[np.float32] = (values - shift[:, None]) / scale[:, None]
        return normalised

    def positions(self, frames: int, size: Size) -> NDArray[np.int64]:
        """(frames, patches of the budget, 2) of frames that have the target size ``size``."""
        return _positions(frames, self.max_patches, size.height // self.patch_size, size.width // self.patch_size)


def _positions(frames: int, rows: int, down: int, across: int) -> NDArray[np.int64]:
    found = np.full((rows, 2), NOWHERE, np.int64)
    found[: down * across] = np.indices((down, across))[::-1].reshape(2, -1).T
    return np.repeat(found[None], frames, axis=0)


def plain(frames: Frames, spec: GemmaSpec) -> GemmaPatches:
    """The stock arithmetic in plain NumPy: the oracle.

    Args:
        frames: (T, H, W, 3) uint8, RGB, already chosen.
        spec: the checkpoint's.

    Raises:
        InvalidMedia: frames that the stock processor would refuse or misread.
    """
    reference.check_frames(frames, 4)
    size, patch = spec.target(Size(*frames.shape[1:3])), spec.patch_size
    resized = reference.resize(frames, size)
    down, across = size.height // patch, size.width // patch
    cut = resized.reshape(-1, down, patch, across, patch, 3).transpose(0, 1, 3, 2, 4, 5)
    pixels = cut.reshape(len(frames), down * across, -1, 3)
    values = np.zeros((len(frames), spec.max_patches, spec.patch_values), np.float32)
    _look_up(pixels, spec, values)
    return GemmaPatches(values, spec.positions(len(frames), size), down * across // spec.pooling**2)


class GemmaPreprocessor:
    """The same bits, sooner: ``GemmaPreprocessor(spec)(frames)``; resizing and cutting are compiled.

    Safe from several threads at once. Options and errors as :class:`vision_bench.preprocess.fast.VideoPreprocessor`.
    """

    def __init__(
        self, spec: GemmaSpec, *, threads: int = 1, compiled: bool | None = None, pool: BufferPool | None = None
    ) -> None:
        self.spec = spec
        self.pool = pool if pool is not None else BufferPool(POOL_BYTES)
        self._cut = VideoPreprocessor(_cutter(spec), dtype="uint8", threads=threads, compiled=compiled, pool=self.pool)

    def close(self) -> None:
        """End the threads."""
        self._cut.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __call__(self, frames: Frames) -> GemmaPatches:
        """Patches of frames, (T, H, W, 3) uint8, RGB, already chosen; of an image as ``pixels[None]``.

        Raises:
            InvalidMedia: frames that the stock processor would refuse or misread.
        """
        reference.check_frames(frames, 4)
        size = self.spec.target(Size(*frames.shape[1:3]))
        cut, grid = self._cut(frames, target=size)
        t, h, w = (int(count) for count in grid)
        # The compiled pass has the channels first.
        pixels = cut.reshape(t, h * w, 3, -1).transpose(0, 1, 3, 2)
        values: NDArray[Any] = self.pool.take((t, self.spec.max_patches, self.spec.patch_values), np.float32)
        values[:, h * w :] = 0
        _look_up(pixels, self.spec, values)
        return GemmaPatches(values, self.spec.positions(t, size), h * w // self.spec.pooling**2)


def _cutter(spec: GemmaSpec) -> VideoSpec:
    """Settings under which each frame is a tubelet of its own and each patch a token."""
    return VideoSpec(
        processor=spec.processor,
        patch_size=spec.patch_size,
        temporal_patch_size=1,
        merge_size=1,
        min_pixels=1,
        max_pixels=1,
        mean=(0.0, 0.0, 0.0),
        std=(1.0, 1.0, 1.0),
        rescale_factor=1.0,
        cap_pixels_per_frame=False,
        max_video_tokens=1,
    )


def _look_up(pixels: NDArray[np.uint8], spec: GemmaSpec, values: NDArray[np.float32]) -> None:
    """Fill the first rows of ``values`` from (T, patches, pixels of a patch, 3) 8-bit values."""
    t, patches, area, _ = pixels.shape
    rows = values.reshape(t, -1, area, 3)[:, :patches]
    for channel, table in enumerate(spec.table()):
        rows[..., channel] = table[pixels[..., channel]]
