"""What a processor that was switched on hands to us: which settings are trusted, what was done, what was left."""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vision_bench.errors import CallerError
from vision_bench.preprocess.buffers import BufferPool
from vision_bench.preprocess.equivalence import Shapeless, compare
from vision_bench.preprocess.fast import POOL_BYTES, STORED, ImagePreprocessor, Kind, VideoPreprocessor
from vision_bench.preprocess.geometry import Grid, Size
from vision_bench.preprocess.reference import Frames, Patches, to_bfloat16
from vision_bench.preprocess.spec import ImageSpec, VideoSpec
from vision_bench.preprocess.tubelets import TubeletCache

SAMPLE_SHAPE = (3, 70, 100)
"""Frames, height, width of what both sides are given before ours is trusted."""
KEPT_SETTINGS = 32
"""Sets of settings whose preprocessors are kept: a server that lets requests choose sizes meets many."""
TUBELETS_A_LINE = 1000
"""Lookups of the cache between two lines about its hit rate."""

Preprocessor = VideoPreprocessor | ImagePreprocessor
Stock = Callable[[Frames], Patches]
Settings = tuple[VideoSpec | ImageSpec, Kind]


class Work:
    """Preprocessors by settings, made when settings are first met. Safe from several threads.

    Before settings of a kind are used, the stock processor and ours are given the same few frames. Where a byte differs
    (a patched library, a processor that is not what its name says), that kind stays with stock, and the log says so.
    """

    def __init__(
        self,
        log: logging.Logger,
        *,
        threads: int = 1,
        compiled: bool | None = None,
        tubelets: TubeletCache | None = None,
    ) -> None:
        self._log = log
        self._tubelets = tubelets
        self._threads = threads
        self._compiled = compiled
        self._pool = BufferPool(POOL_BYTES)
        self._made: OrderedDict[Settings, Preprocessor] = OrderedDict()
        self._trusted: OrderedDict[Settings, bool] = OrderedDict()
        self._making = threading.Lock()
        self._thread = threading.local()
        self.counts: Counter[str] = Counter()
        """What became of inputs: ``videos`` and ``images`` that were ours, ``left: <why>`` for calls that stock did."""

    @contextmanager
    def rounding(self) -> Iterator[None]:
        """While it lasts, this thread's results may be bfloat16: its caller would round them itself."""
        self._thread.rounds = True
        try:
            yield
        finally:
            self._thread.rounds = False

    @property
    def rounds(self) -> bool:
        """Whether this thread's results may be bfloat16."""
        return getattr(self._thread, "rounds", False)

    def patches(
        self, spec: VideoSpec | ImageSpec, inputs: Sequence[Frames], stock: Stock, dtype: Kind = "float32"
    ) -> Patches | None:
        """Patches of several clips or images, one after another, and (K, 3) grids; None where stock is to do it.

        Args:
            spec: the settings of this call.
            inputs: (T, H, W, 3) each, or for images (H, W, 3) each.
            stock: what the processor does by itself with one input and these settings.
            dtype: float32, or bfloat16 as its bits in uint16.
        """
        try:
            preprocess = self._preprocessor((spec, dtype), stock)
            if preprocess is None:
                self.leave("not trusted")
                return None
            grids = [grid_of(spec, one) for one in inputs]
            values = self._pool.take((sum(grid.patches for grid in grids), spec.patch_values), STORED[dtype])
            end = 0
            for one, grid in zip(inputs, grids, strict=True):
                self._fill(preprocess, one, values[end : end + grid.patches])
                end += grid.patches
        except CallerError:
            self.leave("refused")  # stock says why in its own words
            return None
        self.counts["videos" if isinstance(spec, VideoSpec) else "images"] += len(inputs)
        return Patches(values, np.array(grids, np.int64))

    def _fill(self, preprocess: Preprocessor, frames: Frames, out: NDArray[Any]) -> None:
        if self._tubelets is None or isinstance(preprocess, ImagePreprocessor):
            preprocess(frames, out=out)
            return
        target = preprocess.spec.target(len(frames), Size(*frames.shape[1:3]))
        lookups = self._tubelets.lookups
        self._tubelets.fill(preprocess, frames, target, out)
        if lookups // TUBELETS_A_LINE != self._tubelets.lookups // TUBELETS_A_LINE:
            self._log.info("vision-bench tubelet cache: %s", self._tubelets.text)

    def leave(self, why: str) -> None:
        """Count a call that stock does."""
        self.counts[f"left: {why}"] += 1

    def _preprocessor(self, settings: Settings, stock: Stock) -> Preprocessor | None:
        """The one for these settings, or none if their kind is not trusted. Whoever comes first waits for compiling."""
        kind = (replace(settings[0], min_pixels=1, max_pixels=1), settings[1])
        with self._making:
            if kind not in self._trusted:
                self._trusted[kind] = self._gives_the_bytes_of(stock, settings)
                self._forget(self._trusted)
            if not self._trusted[kind]:
                return None
            if settings not in self._made:
                self._made[settings] = self._make(*settings)
                self._forget(self._made)
            self._made.move_to_end(settings)
            return self._made[settings]

    def _forget(self, kept: OrderedDict[Settings, Any]) -> None:
        while len(kept) > KEPT_SETTINGS:
            kept.popitem(last=False)

    def _make(self, spec: VideoSpec | ImageSpec, dtype: Kind) -> Preprocessor:
        options: dict[str, Any] = {"threads": self._threads, "compiled": self._compiled, "pool": self._pool}
        if isinstance(spec, VideoSpec):
            return VideoPreprocessor(spec, dtype=dtype, **options)
        return ImagePreprocessor(spec, dtype=dtype, **options)

    def _gives_the_bytes_of(self, stock: Stock, settings: Settings) -> bool:
        spec, frames = settings[0], sample_for(settings[0])
        theirs = stock(frames)
        try:
            preprocess = self._make(*settings)
            equal, text = same_bytes(preprocess(frames), theirs, preprocess)
        except Exception as problem:  # a compiler that fails must not fail somebody's server
            equal, text = False, f"{type(problem).__name__}: {problem}"
        level, words = (logging.INFO, "is preprocessed by") if equal else (logging.WARNING, "is not left to")
        self._log.log(level, "input of %s %s vision-bench; on a sample, %s", spec.processor, words, text)
        return equal


def same_bytes(ours: Patches, theirs: Patches, preprocess: Preprocessor) -> tuple[bool, str]:
    """Whether ours is what stock gave, rounded where ours is, and what was found, in words."""
    if preprocess.dtype == "bfloat16":
        equal = np.array_equal(ours.pixel_values, to_bfloat16(theirs.pixel_values))
        equal = equal and np.array_equal(ours.grid_thw, theirs.grid_thw)
        return equal, f"{'every' if equal else 'not every'} bfloat16 is that of the stock processor, rounded"
    try:
        found = compare(ours, theirs, preprocess.spec)
    except Shapeless as problem:
        return False, str(problem)
    return found.level == "E0", found.text


def grid_of(spec: VideoSpec | ImageSpec, frames: Frames) -> Grid:
    """The patches of an input, as ``grid_thw`` has them."""
    if isinstance(spec, VideoSpec):
        return spec.grid(len(frames), Size(*frames.shape[1:3]))
    return spec.grid(Size(*frames.shape[:2]))


def sample_for(spec: VideoSpec | ImageSpec) -> Frames:
    """Noise, half of it black and white: what is cut off at 0 and 255 shows there."""
    frames = np.random.default_rng(0).integers(0, 256, (*SAMPLE_SHAPE, 3), np.uint8)
    frames[:, :, ::2] = np.where(frames[:, :, ::2] > 127, np.uint8(255), np.uint8(0))
    return frames if isinstance(spec, VideoSpec) else frames[0]
