"""What the tests of the preprocessor share: checkpoints' settings, frames, digests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vision_bench.preprocess.spec import ImageSpec, VideoSpec

GOLDEN = Path(__file__).parent / "golden" / "preprocess.json"

QWEN3_VIDEO: dict[str, Any] = {
    "video_processor_type": "Qwen3VLVideoProcessor",
    "patch_size": 16,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "size": {"shortest_edge": 4096, "longest_edge": 25_165_824},
}
QWEN2_VIDEO: dict[str, Any] = {
    "video_processor_type": "Qwen2VLVideoProcessor",
    "patch_size": 14,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "size": {"shortest_edge": 128 * 28 * 28, "longest_edge": 768 * 28 * 28},
}
VIDEO_CONFIGS = {"qwen3_vl": QWEN3_VIDEO, "qwen2_vl": QWEN2_VIDEO}
QWEN2_IMAGE: dict[str, Any] = {
    **{key: value for key, value in QWEN2_VIDEO.items() if key not in {"video_processor_type", "size"}},
    "image_processor_type": "Qwen2VLImageProcessorFast",
    "min_pixels": 56 * 56,
    "max_pixels": 28 * 28 * 1280,
}

GEMMA_VIDEO: dict[str, Any] = {
    "video_processor_type": "Gemma4VideoProcessor",
    "patch_size": 16,
    "pooling_kernel_size": 3,
    "max_soft_tokens": 70,
    "do_normalize": True,
    "image_mean": [0.0, 0.0, 0.0],
    "image_std": [1.0, 1.0, 1.0],
    "rescale_factor": 1 / 255,
}
GEMMA_IMAGE: dict[str, Any] = {
    **{key: value for key, value in GEMMA_VIDEO.items() if key != "video_processor_type"},
    "image_processor_type": "Gemma4ImageProcessor",
    "max_soft_tokens": 280,
    "do_normalize": False,
}

COMPILED = [pytest.param(False, id="numpy"), pytest.param(True, id="numba")]
"""Both ways of doing it."""


def small_video(**changes: Any) -> VideoSpec:
    """Qwen3-VL's settings with limits that leave small frames small."""
    return VideoSpec.from_config({**QWEN3_VIDEO, "size": {"shortest_edge": 1024, "longest_edge": 200_000}, **changes})


def small_image(**changes: Any) -> ImageSpec:
    """Qwen2-VL's settings with limits that leave a small image small."""
    return ImageSpec.from_config({**QWEN2_IMAGE, "min_pixels": 784, "max_pixels": 50_000, **changes})


def noise(seed: int, *shape: int) -> NDArray[np.uint8]:
    """Frames without any order in them: (*shape, 3)."""
    return np.random.default_rng(seed).integers(0, 256, (*shape, 3), np.uint8)


def golden_cases() -> list[Any]:
    """Digests of what the stock processors gave, and how their frames were made; the larger take seconds."""
    cases = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]
    return [
        pytest.param(
            case,
            id=f"{case['family']}-{case['W']}x{case['H']}",
            marks=[pytest.mark.heavy] if at and case["H"] > 400 else [],
        )
        for at, case in enumerate(cases)
    ]


def golden_frames(case: dict[str, Any]) -> NDArray[np.uint8]:
    """The frames of a golden case."""
    shape = (case["T"], case["H"], case["W"])
    if case["kind"] == "noise":
        return noise(case["seed"], *shape)
    t, y, x, c = np.ogrid[: shape[0], : shape[1], : shape[2], :3]
    wave = np.sin((x * (c + 1) + y * (3 - c) + 17 * t) / (23 + c)) * np.cos(y / (31 + t))
    return np.floor(127.5 + 127.4 * wave).astype(np.uint8)


def sha256(array: NDArray[Any]) -> str:
    """Of the bytes as they lie."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Equal in type, shape and every bit: -0.0 is not 0.0."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
