"""The same bits as :mod:`vision_bench.preprocess.reference`, sooner: resize, normalise and cut in one pass.

With the extra ``preprocess`` the pass is compiled (docs/decisions/0020); without it NumPy does it a tubelet at a time,
and says so once.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import TracebackType
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from vision_bench.errors import InvalidRequest, MissingExtra, MissingTool
from vision_bench.preprocess import reference
from vision_bench.preprocess.buffers import BufferPool
from vision_bench.preprocess.geometry import Grid, Size
from vision_bench.preprocess.reference import Backend, Frames, Patches
from vision_bench.preprocess.resample import Axis, bicubic_axis
from vision_bench.preprocess.spec import ImageSpec, Spec, VideoSpec

S = TypeVar("S", VideoSpec, ImageSpec)
Kind = Literal["float32", "bfloat16", "uint8"]

STORED: dict[str, type[np.generic]] = {"float32": np.float32, "bfloat16": np.uint16, "uint8": np.uint8}
"""What NumPy holds them in. bfloat16 comes as its bits: ``torch.from_numpy(values).view(torch.bfloat16)``."""

POOL_BYTES = 512 << 20
KEPT_PLANS = 64
"""Sizes of input whose filters are remembered."""
SHARES_A_THREAD = 4
"""Pieces of a clip for each thread, so that one which started late does not keep the others waiting."""

Fill = Callable[[Frames, tuple[int, int], "_Plan", NDArray[Any]], None]


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """All that depends on the size of the input alone."""

    target: Size
    grid: Grid
    across: Axis | None
    down: Axis | None

    @classmethod
    def make(cls, spec: Spec, source: Size, target: Size, frames: int) -> Self:
        grid = Grid(
            -(-frames // spec.temporal_patch_size), target.height // spec.patch_size, target.width // spec.patch_size
        )
        return cls(target, grid, bicubic_axis(source.width, target.width), bicubic_axis(source.height, target.height))


class _Preprocessor(Generic[S]):
    """What videos and images have in common. Safe from several threads at once."""

    backends: ClassVar[tuple[Backend, ...]] = ("torchvision",)
    takes: ClassVar[type[Spec]]

    def __init__(
        self,
        spec: S,
        *,
        dtype: Kind = "float32",
        threads: int = 1,
        compiled: bool | None = None,
        pool: BufferPool | None = None,
        backend: Backend = "torchvision",
    ) -> None:
        """Compile, which takes seconds, so that no request pays for it.

        Args:
            spec: the checkpoint's.
            dtype: float32 as stock; bfloat16 (its bits, as uint16); or uint8, to be normalised where the model runs.
            threads: how many work on one call. One a call is the most work done where many calls run at once.
            compiled: None takes what is installed; True insists; False is plain NumPy.
            pool: where output comes from when the caller brings none.
            backend: whose bits; ``pil`` is for images alone, which Pillow then resizes.

        Raises:
            InvalidRequest: settings of another kind, or a dtype, number of threads or backend that does not exist.
            MissingExtra: ``compiled=True`` without Numba.
            MissingTool: ``compiled=True`` with a Numba that cannot compile here.
        """
        if not isinstance(spec, self.takes):
            raise InvalidRequest(
                f"the settings are a {type(spec).__name__}; {type(self).__name__} takes what "
                f"{self.takes.__name__}.from_config(checkpoint) gives"
            )
        if dtype not in STORED:
            raise InvalidRequest(f"dtype {dtype!r} is not one of {', '.join(STORED)}")
        if not isinstance(threads, int) or threads < 1:
            raise InvalidRequest(f"{threads!r} threads cannot work; give a whole number of 1 or more")
        if backend not in self.backends:
            raise InvalidRequest(f"backend {backend!r} is not one of {', '.join(self.backends)}")
        self.backend: Backend = backend
        self.dtype: Kind = dtype
        self.threads = threads
        self.compiled = _is_there(compiled)
        self.pool = pool if pool is not None else BufferPool(POOL_BYTES)
        self.spec: S = spec
        self._plan: Callable[..., _Plan] = lru_cache(maxsize=KEPT_PLANS)(self._make_plan)
        self._fill: Fill = (_compiled_fill if self.compiled else _plain_fill)(spec, dtype, backend)
        self._helpers = ThreadPoolExecutor(threads - 1, "preprocess") if threads > 1 else None

    def close(self) -> None:
        """End the threads; a later call works without them. The pool stays with whoever holds output."""
        helpers, self._helpers = self._helpers, None
        if helpers is not None:
            helpers.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def table(self) -> NDArray[np.float32]:
        """(3, 256) float32: what each 8-bit value of red, green and blue becomes, to finish uint8 patches elsewhere."""
        return reference.table(self.spec, self.backend)

    def _make_plan(self, *shape: Any) -> _Plan:
        """The work for an input of that shape; kept."""
        raise NotImplementedError

    def _run(self, frames: Frames, plan: _Plan, out: NDArray[Any] | None) -> Patches:
        shape = (plan.grid.patches, self.spec.patch_values)
        values = self.pool.take(shape, STORED[self.dtype]) if out is None else self._checked(out, shape, frames)
        shares = self._shares(plan)

        def work() -> None:
            for units in shares:
                self._fill(frames, units, plan, values)

        executor = self._helpers
        helpers = [executor.submit(work) for _ in range(self.threads - 1)] if executor else []
        work()
        for helper in helpers:
            # One that another call keeps waiting has nothing left to do here.
            if not helper.cancel():
                helper.result()
        return Patches(values, np.array(plan.grid, np.int64))

    def _shares(self, plan: _Plan) -> Iterator[tuple[int, int]]:
        """First and one past the last unit of each piece of work, for whichever thread asks next.

        A unit is a row of tokens of a tubelet; NumPy takes whole tubelets.
        """
        rows = plan.grid.h // self.spec.merge_size
        units = plan.grid.t * rows
        pieces = 1 if self.threads == 1 else min(units, self.threads * SHARES_A_THREAD)
        edges = [units * piece // pieces for piece in range(pieces + 1)]
        if not self.compiled:
            edges = sorted({edge - edge % rows for edge in edges})
        return _Shared(list(pairwise(edges)))

    def _checked(self, out: NDArray[Any], shape: tuple[int, int], frames: Frames) -> NDArray[Any]:
        wanted = np.dtype(STORED[self.dtype])
        if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != wanted:
            given = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
            raise InvalidRequest(f"out is {given}; this input needs {wanted} {shape}")
        if not (out.flags.c_contiguous and out.flags.writeable):
            raise InvalidRequest("out must be C-contiguous and writable")
        if np.may_share_memory(out, frames):
            raise InvalidRequest("out lies in the memory of the frames, which are read meanwhile; give another")
        return out


class VideoPreprocessor(_Preprocessor[VideoSpec]):
    """Clips to patches: ``VideoPreprocessor(spec)(frames)``."""

    takes = VideoSpec

    def __call__(self, frames: Frames, *, out: NDArray[Any] | None = None, target: Size | None = None) -> Patches:
        """Patches of a clip.

        Args:
            frames: (T, H, W, 3) uint8, RGB, already chosen. Rows and frames may lie anywhere, pixels side by side.
            out: where to write: (N, D), C-contiguous. Without it the pool gives memory.
            target: the size that each frame is given, where these frames are a part of a clip whose length decides it.

        Raises:
            InvalidMedia: frames that the stock processor would refuse or misread.
            InvalidRequest: an ``out`` of another shape or dtype, or within the frames.
        """
        reference.check_frames(frames, 4)
        return self._run(frames, self._plan(len(frames), Size(*frames.shape[1:3]), target), out)

    def _make_plan(self, frames: int, size: Size, target: Size | None) -> _Plan:
        if target is None:
            target = self.spec.target(frames, size)
        elif min(target) < 1 or target.height % self.spec.factor or target.width % self.spec.factor:
            raise InvalidRequest(
                f"target {tuple(target)} is no whole number of tokens of {self.spec.factor} pixels a side"
            )
        return _Plan.make(self.spec, size, target, frames)


class ImagePreprocessor(_Preprocessor[ImageSpec]):
    """Images to patches: ``ImagePreprocessor(spec)(pixels)``."""

    backends = ("torchvision", "pil")
    takes = ImageSpec

    def __call__(self, pixels: Frames, *, out: NDArray[Any] | None = None) -> Patches:
        """Patches of an image: (H, W, 3) uint8, RGB; otherwise as :class:`VideoPreprocessor`."""
        reference.check_frames(pixels, 3)
        if self.backend == "pil":
            size = Size(*pixels.shape[:2])
            target = self.spec.target(size)
            if target != size:  # Pillow lets go of the interpreter's lock, as the pass behind it does
                pixels = reference.resize(pixels[None], target, "pil")[0]
            return self._run(pixels[None], self._sized_plan(target), out)
        return self._run(pixels[None], self._plan(Size(*pixels.shape[:2])), out)

    def _sized_plan(self, size: Size) -> _Plan:
        """For an image that has its size already, whatever the settings would make of it."""
        return _Plan.make(self.spec, size, size, 1)

    def _make_plan(self, size: Size) -> _Plan:
        return _Plan.make(self.spec, size, self.spec.target(size), 1)


class _Shared(Iterator[tuple[int, int]]):
    """Pieces of work that several threads draw from."""

    def __init__(self, pieces: list[tuple[int, int]]) -> None:
        self._pieces = iter(pieces)
        self._lock = threading.Lock()

    def __next__(self) -> tuple[int, int]:
        with self._lock:
            return next(self._pieces)


def why_not_compiled() -> str | None:
    """What keeps Numba from compiling here, and what to do about it; None where nothing does."""
    if importlib.util.find_spec("numba") is None:
        return "Numba is not installed (pip install 'vision-bench[preprocess]')"
    try:
        # It refuses to be imported beside a NumPy or a Python that is too new for it.
        is_off = bool(importlib.import_module("numba").config.DISABLE_JIT)
    except Exception as problem:
        return f"Numba cannot be imported ({type(problem).__name__}: {problem})"
    return "NUMBA_DISABLE_JIT is set (unset it)" if is_off else None


def _is_there(compiled: bool | None) -> bool:
    """Whether to compile; a warning where that is not possible and was not turned off."""
    if compiled is False:
        return False
    reason = why_not_compiled()
    if reason is None:
        return True
    if compiled:
        if importlib.util.find_spec("numba") is None:
            raise MissingExtra("preprocess", "compiled preprocessing")
        raise MissingTool(f"preprocessing cannot be compiled: {reason}")
    warnings.warn(
        f"{reason}: preprocessing gives the same bits with NumPy alone, many times slower",
        stacklevel=3,
    )
    return False


def _compiled_fill(spec: Spec, dtype: Kind, backend: Backend) -> Fill:
    from vision_bench.preprocess import compiled  # noqa: PLC0415  Numba is an extra

    fill = compiled.compile_fill(spec.patch_size, dtype, spec.rescale_factor if backend == "pil" else None)
    layout = lru_cache(maxsize=KEPT_PLANS)(
        lambda plan: compiled.layout(spec, plan.grid, plan.across, plan.down, backend)
    )

    def run(frames: Frames, units: tuple[int, int], plan: _Plan, out: NDArray[Any]) -> None:
        scratch = compiled.scratch(spec, frames.shape[2], plan.target.width, plan.across, plan.down)
        fill(frames, units, layout(plan), out, scratch)

    return run


def _plain_fill(spec: Spec, dtype: Kind, backend: Backend) -> Fill:
    tubelet = spec.temporal_patch_size

    def run(frames: Frames, units: tuple[int, int], plan: _Plan, out: NDArray[Any]) -> None:
        rows = plan.grid.h // spec.merge_size
        patches = plan.grid.h * plan.grid.w
        for t in range(units[0] // rows, units[1] // rows):
            chosen = np.minimum(np.arange(t * tubelet, (t + 1) * tubelet), len(frames) - 1)
            cut = reference.patchify(reference.resize(frames[chosen], plan.target), spec)
            part = out[t * patches : (t + 1) * patches]
            if dtype == "uint8":
                part[:] = cut
            elif dtype == "bfloat16":
                part[:] = reference.to_bfloat16(reference.normalise(cut, spec, backend))
            else:
                part[:] = reference.normalise(cut, spec, backend)

    return run
