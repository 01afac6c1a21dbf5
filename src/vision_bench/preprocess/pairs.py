"""Two processors of the same settings, side by side: ours and what it is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vision_bench.errors import UnknownName
from vision_bench.preprocess import reference, stock
from vision_bench.preprocess.equivalence import Processor
from vision_bench.preprocess.fast import ImagePreprocessor, VideoPreprocessor
from vision_bench.preprocess.spec import Config, ImageSpec, VideoSpec

REFERENCE = "preprocess.reference (NumPy)"


@dataclass(frozen=True, slots=True)
class Pair:
    """Ours, theirs, and what both were told."""

    ours: Processor
    theirs: Processor
    spec: VideoSpec | ImageSpec
    against: str
    """What ``theirs`` is, with versions."""


def video_pair(config: str | Path | Config, against: str, threads: int) -> Pair:
    """The video processors of a checkpoint.

    Args:
        config: as :meth:`VideoSpec.from_config` takes it.
        against: ``stock`` or ``reference``; ``pil`` is for images alone.
        threads: how many work on a call, on our side and in torch.

    Raises:
        InvalidSettings, MissingTool: no usable settings; no stock processor here.
    """
    if against == "pil":
        raise UnknownName("there is no PIL-backed video processor; compare images with it")
    spec = VideoSpec.from_config(config)
    ours = VideoPreprocessor(spec, threads=threads)
    if _is_stock(against):
        return Pair(ours, stock.stock_video(spec), spec, _stock(threads))
    return Pair(ours, lambda frames: reference.video(frames, spec), spec, REFERENCE)


def image_pair(config: str | Path | Config, against: str, threads: int) -> Pair:
    """The image processors of a checkpoint; otherwise as :func:`video_pair`. ``pil``: both with that backend."""
    spec = ImageSpec.from_config(config)
    if against == "pil":
        as_pil = ImagePreprocessor(spec, threads=threads, backend="pil")
        return Pair(as_pil, stock.stock_image(spec, "pil"), spec, f"the PIL backend, {_stock(threads)}")
    ours = ImagePreprocessor(spec, threads=threads)
    if _is_stock(against):
        return Pair(ours, stock.stock_image(spec), spec, _stock(threads))
    return Pair(ours, lambda pixels: reference.image(pixels, spec), spec, REFERENCE)


def _is_stock(against: str) -> bool:
    if against not in {"stock", "reference"}:
        raise UnknownName(f"{against!r} is none of stock, reference and pil")
    return against == "stock"


def _stock(threads: int) -> str:
    stock.set_threads(threads)
    return ", ".join(f"{name} {version}" for name, version in stock.versions().items())
