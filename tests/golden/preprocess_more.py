"""Digests of what transformers gives for Gemma 4, and for the PIL backend of Qwen2-VL's image processor.

    <a Python with transformers 5.19 and Pillow 13> tests/golden/preprocess_more.py > tests/golden/preprocess_more.json

The environment that tests/vllm/environment.py builds has one. Nothing of vision_bench runs here: frames are noise, made
as ``tests.preprocess_cases.noise`` makes them.
"""

from __future__ import annotations

import hashlib
import json
import sys
from importlib.metadata import version
from typing import Any

import numpy as np
from transformers.models.gemma4.image_processing_gemma4 import Gemma4ImageProcessor
from transformers.models.gemma4.video_processing_gemma4 import Gemma4VideoProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

CLIP_MEAN, CLIP_STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
GEMMA = {"patch_size": 16, "pooling_kernel_size": 3}
SIZES = [(3, 120, 214), (2, 214, 120), (1, 30, 700), (2, 480, 854)]


def sha256(values: Any) -> str:
    """Of a tensor's bytes."""
    return hashlib.sha256(np.ascontiguousarray(values.numpy()).tobytes()).hexdigest()


def main() -> None:
    """Print every case."""
    image = Gemma4ImageProcessor(**GEMMA, max_soft_tokens=280)
    video = Gemma4VideoProcessor(**GEMMA, max_soft_tokens=70)
    pil = Qwen2VLImageProcessorPil(
        patch_size=14, temporal_patch_size=2, merge_size=2, image_mean=CLIP_MEAN, image_std=CLIP_STD,
        size={"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280},
    )  # fmt: skip
    cases = []
    for shape in SIZES:
        frames = np.random.default_rng(1).integers(0, 256, (*shape, 3), np.uint8)
        of_image = image(frames[0], input_data_format="channels_last", return_tensors="pt")
        of_video = video(frames, do_sample_frames=False, return_tensors="pt")
        of_pil = pil(frames[0], input_data_format="channels_last", return_tensors="pt")
        cases.append(
            {
                "shape": shape,
                "gemma_image": sha256(of_image["pixel_values"]),
                "gemma_image_positions": sha256(of_image["image_position_ids"]),
                "gemma_video": sha256(of_video["pixel_values_videos"]),
                "gemma_video_positions": sha256(of_video["video_position_ids"]),
                "qwen2_image_pil": sha256(of_pil["pixel_values"]),
            }
        )
    made_by = {name: version(name) for name in ("transformers", "torch", "torchvision", "pillow", "numpy")}
    json.dump({"made_by": made_by, "cases": cases}, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
