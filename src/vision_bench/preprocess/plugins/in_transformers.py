"""Qwen's video and image processors of transformers, with our arithmetic inside: one line on, one line off.

::

    from vision_bench.preprocess.plugins.in_transformers import install

    install()  # all of them, also those made before
    processor = AutoProcessor.from_pretrained(...)  # as ever

The classes stay what they are: names, types, arguments, saved files. Two of their methods are replaced. What these
cannot do bit for bit (other dtypes, a GPU, a filter that is not bicubic, a class that changes a step) the stock methods
do. torch and transformers are imported when this is switched on, not before.
"""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from types import TracebackType
from typing import Self

from vision_bench.preprocess import stock
from vision_bench.preprocess.fast import why_not_compiled
from vision_bench.preprocess.plugins import methods
from vision_bench.preprocess.plugins.tested import reason_to_refuse
from vision_bench.preprocess.plugins.work import Work
from vision_bench.preprocess.tubelets import TubeletCache

VIDEO_CLASSES = ("Qwen2VLVideoProcessor", "Qwen3VLVideoProcessor")
IMAGE_CLASSES = ("Qwen2VLImageProcessor",)


class Installed:
    """The switch, thrown. As a context manager it is thrown back at the end."""

    def __init__(self, work: Work | None, reason: str | None, tubelets: TubeletCache | None = None) -> None:
        self.work = work
        self.tubelets = tubelets
        """The cache, with its hits and misses; None when there is none."""
        self.reason = reason
        """Why everything stays with the stock processors; None when it does not."""

    @property
    def counts(self) -> Counter[str]:
        """Inputs that were ours (``videos``, ``images``), and calls that stock did (``left: <why>``)."""
        return Counter() if self.work is None else self.work.counts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.work is not None:
            uninstall()


def install(*, threads: int = 1, cache_bytes: int = 0, log: logging.Logger | None = None) -> Installed:
    """Switch on, for all processors of this process. A second call replaces the options of the first.

    Refused, with a warning that says why, where a version was not tried or Numba is missing.

    Args:
        threads: how many work on one call.
        cache_bytes: memory for tubelets that may be asked for again; 0, the default, keeps none. It is worth it where
            frames are shared and scaled down a lot (docs/preprocess.md).
        log: where it is said what is preprocessed here and what is not; by default this module's logger.
    """
    reason = why_not()
    if reason is not None:
        warnings.warn(f"the stock processors stay: {reason}", stacklevel=2)
        return Installed(None, reason)
    uninstall()
    tubelets = TubeletCache(cache_bytes) if cache_bytes else None
    work = Work(log or logging.getLogger(__name__), threads=threads, tubelets=tubelets)
    for processor in map(stock.processor_class, VIDEO_CLASSES):
        methods.replace(processor, "_prepare_input_videos", methods.prepare_videos)
        methods.replace(processor, "_preprocess", methods.preprocess_videos(processor, work))
    for processor in map(stock.processor_class, IMAGE_CLASSES):
        methods.replace(processor, "_preprocess", methods.preprocess_images(processor, work))
    return Installed(work, None, tubelets)


def uninstall() -> None:
    """Switch off: the stock methods are back, also in processors made in between. Does nothing when it is off."""
    for processor in map(stock.processor_class, VIDEO_CLASSES + IMAGE_CLASSES):
        methods.restore(processor)


def why_not() -> str | None:
    """Why :func:`install` would refuse; None when it would not."""
    if reason := why_not_compiled():
        return f"{reason}; not compiled, ours is the slower one"
    return reason_to_refuse(stock.versions())
