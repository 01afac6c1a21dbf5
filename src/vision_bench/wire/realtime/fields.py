"""The fields of ``session.start``, their kinds and ranges, read as leniently as the server's validator reads them.

Numbers may come as text, whole floats are integers, booleans are 0 and 1; text is only ever text. What is unknown is
dropped without a word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from vision_bench.wire.shapes import Json

Reader = Callable[[Any], Any]
"""Gives the value as it will be used, or raises ValueError with what it should have been."""

INT64 = 2**63
Number = TypeVar("Number", int, float)


def integer(minimum: int | None = None, maximum: int | None = None) -> Reader:
    """A whole number, also as text or as a float without a fraction."""

    def read(value: Any) -> int:
        return _within(_whole(value), minimum, maximum)

    return read


def number(minimum: float | None = None, maximum: float | None = None, *, finite: bool = False) -> Reader:
    """A number, also as text."""

    def read(value: Any) -> float:
        if not isinstance(value, int | float | str):
            raise ValueError("Input should be a valid number")
        try:
            found = float(value)
        except (ValueError, OverflowError):
            raise ValueError("Input should be a valid number") from None
        if finite and not math.isfinite(found):
            raise ValueError("Input should be a finite number")
        return _within(found, minimum, maximum)

    return read


def text(pattern: str | None = None) -> Reader:
    """Text, all of it as ``pattern`` says."""

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("Input should be a valid string")
        if pattern is not None and not re.fullmatch(pattern, value):
            raise ValueError(f"String should match pattern '{pattern}'")
        return value

    return read


def choice(*names: str) -> Reader:
    """One of the names."""

    def read(value: Any) -> str:
        if value not in names:
            raise ValueError(f"Input should be {' or '.join(map(repr, names))}")
        return str(value)

    return read


def boolean(value: Any) -> bool:
    """True or false, also as 0, 1 or their words."""
    if isinstance(value, bool) or value in (0, 1):
        return bool(value)
    words = {"true": True, "false": False, "1": True, "0": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise ValueError("Input should be a valid boolean")


def json_object(value: Any) -> Json:
    """A JSON object, whatever is in it."""
    if not isinstance(value, dict):
        raise ValueError("Input should be a valid dictionary")
    return value


def read_object(given: Mapping[str, Any], fields: Mapping[str, Reader]) -> Json:
    """Those of ``given`` that are fields, read; null means not given.

    Raises:
        ValueError: a value of another kind or out of range; the message begins with the field's name.
    """
    found: Json = {}
    for name, read in fields.items():
        value = given.get(name)
        if value is None:
            continue
        try:
            found[name] = read(value)
        except ValueError as problem:
            raise ValueError(f"{name}: {problem}") from problem
    return found


def image_reference(value: Any) -> Any:
    """``{"image_url": …}`` or ``{"file_id": …}`` and nothing beside it; a list of them passes and is refused later."""
    if isinstance(value, list):
        return [image_reference(entry) for entry in value]
    if not isinstance(value, dict):
        raise ValueError("Input should be a valid dictionary")
    if len(value) != 1 or not set(value) <= {"image_url", "file_id"}:
        raise ValueError("Input should be an object with image_url or file_id alone")
    (reference,) = value.values()
    if not isinstance(reference, str):
        raise ValueError("Input should be a valid string")
    return value


def video_params(value: Any) -> Json:
    """The block that repeats four of the fields; the top level wins."""
    return read_object(json_object(value), VIDEO_PARAMS)


def _whole(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,4000}(\.0*)?\s*", value, re.ASCII):
        return int(value.split(".")[0])
    raise ValueError("Input should be a valid integer")


def _within(value: Number, minimum: float | None, maximum: float | None) -> Number:
    # Written so that NaN, which is neither, is refused.
    if minimum is not None and not value >= minimum:
        raise ValueError(f"Input should be greater than or equal to {minimum}")
    if maximum is not None and not value <= maximum:
        raise ValueError(f"Input should be less than or equal to {maximum}")
    return value


VIDEO_PARAMS: dict[str, Reader] = {
    "width": integer(1),
    "height": integer(1),
    "num_frames": integer(1),
    "fps": number(1, finite=True),
}

START_FIELDS: dict[str, Reader] = {
    "model": text(),
    "prompt": text(),
    "seconds": text(r"[1-9][0-9]{0,8}"),
    "size": text(r"[0-9]{1,9}x[0-9]{1,9}"),
    "image_reference": image_reference,
    "video_params": video_params,
    "user": text(),
    **VIDEO_PARAMS,
    "negative_prompt": text(),
    "num_inference_steps": integer(1, 200),
    "guidance_scale": number(0, 20),
    "guidance_scale_2": number(0, 20),
    "true_cfg_scale": number(0, 20),
    "boundary_ratio": number(0, 1),
    "flow_shift": number(),
    "seed": integer(-INT64, INT64 - 1),
    "quality": choice("lossless", "high"),
    "num_outputs_per_prompt": integer(1, 10),
    "generate_sound": boolean,
    "enable_frame_interpolation": boolean,
    "frame_interpolation_exp": integer(1),
    "frame_interpolation_scale": number(0),
    "lora": json_object,
    "extra_params": json_object,
}

START_DEFAULTS: Json = {
    "num_outputs_per_prompt": 1,
    "generate_sound": False,
    "enable_frame_interpolation": False,
    "frame_interpolation_exp": 1,
    "frame_interpolation_scale": 1.0,
}
"""What the echo of a request holds although nobody sent it. ``fps`` is not among them: 24 is used and not said."""
