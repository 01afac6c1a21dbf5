"""What AutoProcessor gives with our methods switched on and off. Run by vLLM's Python; prints one JSON object.

    python processors.py FOLDER     a checkpoint's processor files

Every case is called off, on, and off again. Told of each: whether all outputs were equal to the last byte, and what
became of its inputs while it was on.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers import AutoProcessor

from vision_bench.preprocess import stock
from vision_bench.preprocess.plugins.in_transformers import Installed, install
from vision_bench.preprocess.spec import VideoSpec

TEXT = {
    "videos": "<|vision_start|><|video_pad|><|vision_end|>",
    "images": "<|vision_start|><|image_pad|><|vision_end|>",
}
CLIPS = [(15, 480, 854), (4, 240, 320), (7, 320, 180), (2, 33, 1200), (5, 64, 64), (3, 1080, 1920), (1, 50, 70)]
STILLS = [(480, 854), (33, 1200), (64, 64), (900, 50), (1080, 1920)]


def noise(*shape: int) -> np.ndarray:
    """(*shape, 3) uint8, the same for the same shape."""
    return np.random.default_rng(sum(shape)).integers(0, 256, (*shape, 3), np.uint8)


def cases() -> dict[str, dict[str, Any]]:
    """Inputs and options of a processor's call, by name; names begin with what is to happen: ours or left."""
    found: dict[str, dict[str, Any]] = {}
    for shape in CLIPS:
        found[f"ours: clip {shape}"] = {"videos": [noise(*shape)]}
    for shape in STILLS:
        found[f"ours: image {shape}"] = {"images": [Image.fromarray(noise(*shape))]}
    clip = noise(6, 120, 200)
    metadata = [{"total_num_frames": 6, "fps": 4.0, "frames_indices": list(range(6)), "duration": 1.5}]
    frames = [Image.fromarray(frame) for frame in clip]
    return found | {
        "ours: two clips": {"videos": [clip, noise(3, 70, 90)]},
        "ours: two clips of one size": {"videos": [clip, clip[::-1].copy()]},
        "ours: tensor, channels first": {"videos": [torch.from_numpy(clip).permute(0, 3, 1, 2).contiguous()]},
        "ours: array, channels first": {"videos": [clip.transpose(0, 3, 1, 2).copy()]},
        "ours: every other frame, cropped": {"videos": [clip[::2, 10:110, 20:180]]},
        "ours: list of pictures": {"videos": [frames]},
        "ours: frames chosen by the processor": {
            "videos": [clip],
            "videos_kwargs": {"do_sample_frames": True, "fps": 2, "video_metadata": metadata},
        },
        "ours: another size": {
            "videos": [clip],
            "videos_kwargs": {"size": {"shortest_edge": 8192, "longest_edge": 50_000}},
        },
        "ours: capped": {"videos": [clip], "videos_kwargs": {"cap_pixels_per_frame": True}},
        "ours: NumPy out": {"videos": [clip], "return_tensors": "np"},
        "ours: images of three kinds": {
            "images": [frames[0], noise(90, 70), torch.from_numpy(noise(60, 80)).permute(2, 0, 1)]
        },
        "ours: grey clip": {"videos": [clip[..., :1]]},
        "ours: three pixels high, or three channels": {"videos": [noise(2, 3, 40)]},
        "ours: grey image": {"images": [frames[0].convert("L")]},
        "left: float frames": {"videos": [clip.astype(np.float32)]},
        "left: not normalised": {"videos": [clip], "videos_kwargs": {"do_normalize": False}},
        "left: bilinear": {"videos": [clip], "videos_kwargs": {"resample": 2}},
        "left: image not resized": {"images": [noise(64, 96)], "images_kwargs": {"do_resize": False}},
        "left: a sliver": {"videos": [noise(2, 4, 1600)]},
    }


def outcome(call: Callable[[], Any]) -> dict[str, Any]:
    """Digests, shapes and types of all outputs; of an error its type and words."""
    try:
        outputs = dict(call())
    except ValueError as problem:
        return {"error": f"{type(problem).__name__}: {problem}"}
    found = {}
    for name, value in outputs.items():
        array = value.contiguous().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
        kind = f"{type(value).__name__} {getattr(value, 'dtype', '')} {array.shape}"
        found[name] = f"{kind} {hashlib.sha256(array.tobytes()).hexdigest()}"
    return found


def report(processor: Any, on: Installed, name: str, case: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What a case came to while it was on."""
    counts = on.counts.copy()
    during = outcome(lambda: ask(processor, case))
    return {"equal": during == before, "counts": dict(on.counts - counts), "outputs": before}


def ask(processor: Any, case: dict[str, Any]) -> Any:
    """Call with as many placeholders as there are clips or images."""
    kind = "videos" if "videos" in case else "images"
    return processor(**{"text": TEXT[kind] * len(case[kind]), "return_tensors": "pt", **case})


def bypasses(on: Installed) -> bool:
    """Whether the comparison with stock still compares with stock."""
    before = on.counts.copy()
    stock.stock_video(
        VideoSpec("Qwen2VLVideoProcessor", 14, 2, 2, 784, 9999, (0.5,) * 3, (0.5,) * 3, 1 / 255, False, 9)
    )(noise(2, 30, 40))
    return on.counts == before


def rounded_alike(processor: Any, on: Installed) -> bool:
    """Whether what is written as bfloat16 is what torch rounds the float32 to, of clips and images."""
    assert on.work is not None
    equal = []
    for shape, name in (((5, 120, 200), "videos"), ((150, 97), "images")):
        case = {name: [noise(*shape)]}
        values = {"videos": "pixel_values_videos", "images": "pixel_values"}[name]
        with on.work.rounding():
            found = ask(processor, case)[values]
            arrays = ask(processor, {**case, "return_tensors": "np"})[values]
        expected = ask(processor, case)[values]  # float32, equal to stock's: the other cases say so
        equal += [found.dtype == torch.bfloat16, torch.equal(found, expected.to(torch.bfloat16))]
        equal.append(np.array_equal(arrays, expected.numpy()))  # NumPy has no bfloat16: not rounded
    return all(equal)


def main() -> None:
    """Call every case three times and print what happened."""
    processor = AutoProcessor.from_pretrained(sys.argv[1])
    classes = [type(processor.video_processor).__name__, type(processor.image_processor).__name__]
    before = {name: outcome(lambda case=case: ask(processor, case)) for name, case in cases().items()}
    with install() as on:
        found = {name: report(processor, on, name, case, before[name]) for name, case in cases().items()}
        compares_with_stock = bypasses(on)
        rounds = rounded_alike(processor, on)
        counts = on.counts.copy()
    again = {name: outcome(lambda case=case: ask(processor, case)) for name, case in cases().items()}
    json.dump(
        {
            "classes": classes,
            "reason": on.reason,
            "cases": found,
            "compares_with_stock": compares_with_stock,
            "rounded_alike": rounds,
            "off_again": again == before and on.counts == counts,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
