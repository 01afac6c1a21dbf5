"""What a checkpoint's own file says about frames: sizes, limits, normalisation. Nothing here is a default of ours."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from vision_bench.errors import InvalidRequest
from vision_bench.preprocess.geometry import (
    Grid,
    Size,
    capped_clip_limit,
    capped_frame_limit,
    clip_target,
    frame_target,
    patch_grid,
)

BICUBIC = 3
"""Pillow's number for the one filter that these processors are published with."""

IMAGE_PROCESSORS = ("Qwen2VLImageProcessor", "Qwen2VLImageProcessorFast")
VIDEO_PROCESSORS = {"Qwen2VLVideoProcessor": 128_000, "Qwen3VLVideoProcessor": 768}
"""Stock classes, and the ``max_video_tokens`` each of them takes where the file names none (transformers 5.19)."""

LIMITS_OF_A_CLIP = ("Qwen3VLVideoProcessor",)
"""Classes whose limits are pixels times frames. The others' are pixels of one frame."""

IMAGE_FILES = ("processor_config.json", "preprocessor_config.json")
VIDEO_FILES = ("processor_config.json", "video_preprocessor_config.json", "preprocessor_config.json")
"""Where transformers looks in a checkpoint's folder, in its order; the first is used only if it has a part for it."""

LEAST, MOST = 2.0**-126, (2 - 2.0**-23) * 2.0**127
"""Of the positive numbers that float32 holds in full: what a setting may be multiplied or divided by."""

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spec:
    """What images and videos have in common."""

    processor: str
    """The stock class whose output is meant."""
    patch_size: int
    """Pixels a side."""
    temporal_patch_size: int
    """Frames in a tubelet."""
    merge_size: int
    """Patches a side of one token."""
    min_pixels: int
    max_pixels: int
    mean: tuple[float, float, float]
    """Of the values divided by 255."""
    std: tuple[float, float, float]
    rescale_factor: float

    @property
    def factor(self) -> int:
        """Pixels a side of one token."""
        return self.patch_size * self.merge_size

    @property
    def patch_values(self) -> int:
        """Columns of ``pixel_values``: channel, frame, row, column of one patch."""
        return 3 * self.temporal_patch_size * self.patch_size**2


@dataclass(frozen=True, slots=True)
class ImageSpec(Spec):
    """How one image becomes patches."""

    @classmethod
    def from_config(cls, config: str | Path | Config, *, processor: str | None = None) -> Self:
        """Read a checkpoint's folder, its ``preprocessor_config.json``, or what is in it.

        Args:
            config: a folder, a file, or the parsed file.
            processor: the stock class, where the file does not name it (``image_processor_type``).

        Raises:
            InvalidRequest: a missing or unusable file or setting, or a processor that is not one of these.
        """
        found = read_settings(config, IMAGE_FILES, "image_processor")
        name = processor_name(found, "image_processor_type", processor, IMAGE_PROCESSORS)
        return cls(**_common(found, name))

    def target(self, size: Size) -> Size:
        """The size that an image of ``size`` is given."""
        return frame_target(size, factor=self.factor, min_pixels=self.min_pixels, max_pixels=self.max_pixels)

    def grid(self, size: Size) -> Grid:
        """The patches of an image of ``size``."""
        return patch_grid(
            1, self.target(size), patch_size=self.patch_size, temporal_patch_size=self.temporal_patch_size
        )


@dataclass(frozen=True, slots=True)
class VideoSpec(Spec):
    """How a clip, its frames already chosen, becomes patches."""

    cap_pixels_per_frame: bool
    """False where the file says nothing, as in transformers before 5.22, which changes what is meant by nothing."""
    max_video_tokens: int

    @classmethod
    def from_config(cls, config: str | Path | Config, *, processor: str | None = None) -> Self:
        """Read a checkpoint's folder, its ``video_preprocessor_config.json``, or what is in it.

        Args:
            config: a folder, a file, or the parsed file.
            processor: the stock class, where the file does not name it (``video_processor_type``).

        Raises:
            InvalidRequest: a missing or unusable file or setting, or a processor that is not one of these.
        """
        found = read_settings(config, VIDEO_FILES, "video_processor")
        name = processor_name(found, "video_processor_type", processor, tuple(VIDEO_PROCESSORS))
        return cls(
            **_common(found, name),
            cap_pixels_per_frame=_switch(found, "cap_pixels_per_frame"),
            max_video_tokens=positive(found, "max_video_tokens", VIDEO_PROCESSORS[name]),
        )

    def target(self, frames: int, size: Size) -> Size:
        """The size that each of ``frames`` frames of ``size`` is given."""
        limits, tokens = (self.min_pixels, self.max_pixels), self.max_video_tokens
        if self.processor in LIMITS_OF_A_CLIP:
            most = self.max_pixels
            if self.cap_pixels_per_frame and frames:
                most = capped_clip_limit(frames, factor=self.factor, limits=limits, tokens=tokens)
            return clip_target(
                frames,
                size,
                factor=self.factor,
                temporal_factor=self.temporal_patch_size,
                min_pixels=self.min_pixels,
                max_pixels=most,
            )
        most = self.max_pixels
        if self.cap_pixels_per_frame and frames:
            most = capped_frame_limit(
                frames, factor=self.factor, temporal_factor=self.temporal_patch_size, limits=limits, tokens=tokens
            )
        return frame_target(size, factor=self.factor, min_pixels=self.min_pixels, max_pixels=most)

    def grid(self, frames: int, size: Size) -> Grid:
        """The patches of a clip of ``frames`` frames of ``size``."""
        return patch_grid(
            frames,
            self.target(frames, size),
            patch_size=self.patch_size,
            temporal_patch_size=self.temporal_patch_size,
        )


def read_settings(config: str | Path | Config, names: tuple[str, ...], part: str) -> Config:
    """The settings in a folder, a file or a mapping; those of one part where a file holds several."""
    if isinstance(config, Mapping):
        inner = config.get(part, config)
        return inner if isinstance(inner, Mapping) else config
    if not isinstance(config, str | os.PathLike):
        raise InvalidRequest(f"settings are a {type(config).__name__}; give a folder, a file or what is in it")
    path = Path(config)
    if not path.is_dir():
        return read_settings(_load(path), names, part)
    for name in names:
        if (path / name).is_file():
            found = _load(path / name)
            if name != "processor_config.json" or part in found:
                return read_settings(found, names, part)
    raise InvalidRequest(f"{path} holds none of {', '.join(names)}; name the checkpoint's folder or the file itself")


def _load(path: Path) -> Config:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise InvalidRequest(f"{path} cannot be read as JSON: {problem}") from problem
    if not isinstance(found, dict):
        raise InvalidRequest(f"{path} holds a {type(found).__name__}; a processor's file holds one object")
    return found


def processor_name(found: Config, key: str, given: str | None, known: tuple[str, ...]) -> str:
    name = given or found.get(key)
    if name is None:
        raise InvalidRequest(f"the file names no {key}; pass processor=, one of {', '.join(known)}")
    if name not in known:
        raise InvalidRequest(f"{key} {name!r} is not one of {', '.join(known)}; use the stock processor for it")
    return str(name)


def _common(found: Config, name: str) -> dict[str, Any]:
    """The fields of :class:`Spec`, checked."""
    check_steps(found, "do_resize", "do_rescale", "do_normalize")
    min_pixels, max_pixels = _limits(found, name)
    return {
        "processor": name,
        "patch_size": positive(found, "patch_size"),
        "temporal_patch_size": positive(found, "temporal_patch_size"),
        "merge_size": positive(found, "merge_size"),
        "min_pixels": min_pixels,
        "max_pixels": max_pixels,
        "mean": triple(found, "image_mean"),
        "std": triple(found, "image_std", positive=True),
        "rescale_factor": rescale_factor(found),
    }


def check_steps(found: Config, *switches: str) -> None:
    """Refuse a file that turns a step off, or filters in another way."""
    for switch in switches:
        if found.get(switch, True) is not True:
            raise InvalidRequest(f"{switch} is {found[switch]!r}; only processors that do it are supported")
    if found.get("resample", BICUBIC) not in (BICUBIC, None):  # no set: what is there may be a list
        raise InvalidRequest(f"resample is {found['resample']!r}; only {BICUBIC} (bicubic) is supported")


def rescale_factor(found: Config) -> float:
    """What brings 8-bit values to 0..1."""
    value = found.get("rescale_factor", 1 / 255)
    if not _is_number(value) or value < LEAST:
        raise InvalidRequest(f"rescale_factor is {value!r}; it must be a number above zero")
    return float(value)


def _switch(found: Config, key: str) -> bool:
    value = found.get(key)
    if value is not None and not isinstance(value, bool):
        raise InvalidRequest(f"{key} is {value!r}; it must be true or false")
    return bool(value)


def _is_number(value: object) -> bool:
    """Whether it is a number that float32 can hold; NaN and infinity, which JSON files may have, are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= MOST  # false for NaN, and right for a whole number of any length


def _limits(found: Config, name: str) -> tuple[int, int]:
    """``size``, over which the Qwen2-VL classes let ``min_pixels`` and ``max_pixels`` win."""
    size = found.get("size")
    both = dict(size) if isinstance(size, Mapping) else {}
    if name not in LIMITS_OF_A_CLIP:
        for key, old in (("shortest_edge", "min_pixels"), ("longest_edge", "max_pixels")):
            if found.get(old) is not None:
                both[key] = found[old]
    low, high = positive(both, "shortest_edge", where="size."), positive(both, "longest_edge", where="size.")
    if low > high:
        raise InvalidRequest(f"size: shortest_edge {low} is more than longest_edge {high}")
    return low, high


def positive(found: Config, key: str, default: int | None = None, *, where: str = "") -> int:
    value = found.get(key, default)
    if value is None:
        raise InvalidRequest(f"the file has no {where}{key}; take the one that came with the checkpoint")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidRequest(f"{where}{key} is {value!r}; it must be a whole number of 1 or more")
    return value


def triple(found: Config, key: str, *, positive: bool = False) -> tuple[float, float, float]:
    value = found.get(key)
    numbers = value if isinstance(value, list | tuple) else []
    if len(numbers) != 3 or not all(map(_is_number, numbers)):
        raise InvalidRequest(f"{key} is {value!r}; it must be three numbers, for red, green and blue")
    if positive and min(numbers) < LEAST:
        raise InvalidRequest(f"{key} is {value!r}; each must be more than zero")
    return (float(numbers[0]), float(numbers[1]), float(numbers[2]))
