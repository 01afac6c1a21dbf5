"""The libraries of the extra ``baseline``, loaded when first used, so that importing this package costs little."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from vision_bench.errors import MissingExtra


def load_cv2() -> Any:
    """OpenCV, which comes with rapidocr.

    Raises:
        MissingExtra: it is not installed.
    """
    return load("cv2", "looking at pictures (--model baseline)")


def load(module: str, purpose: str) -> ModuleType:
    """A module of the extra.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra("baseline", purpose) from error
