"""Two processors of the same settings, side by side: ours and what it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vision_bench.errors import UnknownName
from vision_bench.preprocess import reference, stock
from vision_bench.preprocess.equivalence import Processor, Settings
from vision_bench.preprocess.fast import ImagePreprocessor, VideoPreprocessor
from vision_bench.preprocess.gemma import PROCESSORS, GemmaPatches, GemmaPreprocessor, GemmaSpec, plain
from vision_bench.preprocess.reference import Frames, Patches
from vision_bench.preprocess.spec import IMAGE_FILES, VIDEO_FILES, Config, ImageSpec, VideoSpec, read_settings

REFERENCE = "preprocess.reference (NumPy)"


@dataclass(frozen=True, slots=True)
class Pair:
    """Ours, theirs, and what both were told."""

    ours: Processor
    theirs: Processor
    spec: Settings
    against: str
    """What ``theirs`` is, with versions."""


def video_pair(config: str | Path | Config, against: str, threads: int) -> Pair:
    """The video processors of a checkpoint.

    Args:
        config: as :meth:`VideoSpec.from_config` takes it.
        against: ``stock`` or ``reference``; ``pil`` is for images alone.
        threads: how many work on a call, on our side and in torch.

    Raises:
        InvalidRequest, MissingTool: no usable settings; no stock processor here.
    """
    if against == "pil":
        raise UnknownName("there is no PIL-backed video processor; compare images with it")
    if _is_gemma(config, "video"):
        return _gemma_pair(config, "video", against, threads)
    spec = VideoSpec.from_config(config)
    ours = VideoPreprocessor(spec, threads=threads)
    if _is_stock(against):
        return Pair(ours, stock.stock_video(spec), spec, _stock(threads))
    return Pair(ours, lambda frames: reference.video(frames, spec), spec, REFERENCE)


def image_pair(config: str | Path | Config, against: str, threads: int) -> Pair:
    """The image processors of a checkpoint; otherwise as :func:`video_pair`. ``pil``: both with that backend."""
    if _is_gemma(config, "image"):
        return _gemma_pair(config, "image", against, threads)
    spec = ImageSpec.from_config(config)
    if against == "pil":
        as_pil = ImagePreprocessor(spec, threads=threads, backend="pil")
        return Pair(as_pil, stock.stock_image(spec, "pil"), spec, f"the PIL backend, {_stock(threads)}")
    ours = ImagePreprocessor(spec, threads=threads)
    if _is_stock(against):
        return Pair(ours, stock.stock_image(spec), spec, _stock(threads))
    return Pair(ours, lambda pixels: reference.image(pixels, spec), spec, REFERENCE)


def _is_gemma(config: str | Path | Config, part: Literal["image", "video"]) -> bool:
    files = IMAGE_FILES if part == "image" else VIDEO_FILES
    return read_settings(config, files, f"{part}_processor").get(f"{part}_processor_type") == PROCESSORS[part]


def _gemma_pair(config: str | Path | Config, part: Literal["image", "video"], against: str, threads: int) -> Pair:
    """Gemma 4's, for clips or for single images; their places and tokens are compared, too."""
    if against == "pil":
        raise UnknownName("the PIL-backed processor of Gemma 4 was not rebuilt here; compare with stock")
    spec = GemmaSpec.from_config(config, part)
    fast = GemmaPreprocessor(spec, threads=threads)

    def flat(process: Callable[[Frames], GemmaPatches]) -> Processor:
        def run(frames: Frames) -> Patches:
            return process(frames[None] if part == "image" else frames).flat()

        return run

    if _is_stock(against):
        return Pair(flat(fast), stock.stock_gemma(spec), spec, _stock(threads))
    return Pair(flat(fast), flat(lambda frames: plain(frames, spec)), spec, REFERENCE)


def _is_stock(against: str) -> bool:
    if against not in {"stock", "reference"}:
        raise UnknownName(f"{against!r} is none of stock, reference and pil")
    return against == "stock"


def _stock(threads: int) -> str:
    stock.set_threads(threads)
    return ", ".join(f"{name} {version}" for name, version in stock.versions().items())
