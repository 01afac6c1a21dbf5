"""The stock processors, where torch and transformers are installed: what ours is compared with.

Importing this costs nothing; calling it imports them. Frames are handed over as they are, and never sampled.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from vision_bench.errors import MissingTool
from vision_bench.preprocess.equivalence import Processor
from vision_bench.preprocess.gemma import GemmaPatches, GemmaSpec
from vision_bench.preprocess.reference import Backend, Frames, Patches
from vision_bench.preprocess.spec import ImageSpec, VideoSpec

_MODULES = {
    "Qwen2VLVideoProcessor": "transformers.models.qwen2_vl.video_processing_qwen2_vl",
    "Qwen3VLVideoProcessor": "transformers.models.qwen3_vl.video_processing_qwen3_vl",
    "Qwen2VLImageProcessor": "transformers.models.qwen2_vl.image_processing_qwen2_vl",
    "Gemma4ImageProcessor": "transformers.models.gemma4.image_processing_gemma4",
    "Gemma4VideoProcessor": "transformers.models.gemma4.video_processing_gemma4",
    "Qwen2VLImageProcessorPil": "transformers.models.qwen2_vl.image_processing_pil_qwen2_vl",
}


def stock_video(spec: VideoSpec) -> Processor:
    """The torchvision-backed video processor with these settings.

    Raises:
        MissingTool: torch, torchvision or transformers is not installed.
    """
    caps = {"cap_pixels_per_frame": spec.cap_pixels_per_frame, "max_video_tokens": spec.max_video_tokens}
    process = as_shipped(processor_class(spec.processor))(**_settings(spec), **caps)

    def run(frames: Frames) -> Patches:
        found = process(frames, do_sample_frames=False, return_tensors="pt")
        return Patches(found["pixel_values_videos"].numpy(), found["video_grid_thw"].numpy()[0])

    return run


def stock_image(spec: ImageSpec, backend: Backend = "torchvision") -> Processor:
    """The image processor with these settings and of this backend.

    Raises:
        MissingTool: torch, torchvision or transformers is not installed.
    """
    # "Fast" was the torchvision-backed one until transformers 5 dropped the other under this name.
    name = spec.processor.removesuffix("Fast")
    process = as_shipped(processor_class(name + "Pil" if backend == "pil" else name))(**_settings(spec))

    def run(pixels: Frames) -> Patches:
        # Told where the channels are: left to guess, an image three pixels high is taken to begin with them.
        found = process(pixels, input_data_format="channels_last", return_tensors="pt")
        return Patches(found["pixel_values"].numpy(), found["image_grid_thw"].numpy()[0])

    return run


def stock_gemma(spec: GemmaSpec) -> Processor:
    """Gemma 4's image or video processor with these settings; patches and places as :meth:`GemmaPatches.flat` has them.

    Raises:
        MissingTool: torch, torchvision or transformers is not installed.
    """
    normal = {} if spec.mean is None or spec.std is None else {"image_mean": [*spec.mean], "image_std": [*spec.std]}
    process = processor_class(spec.processor)(
        patch_size=spec.patch_size,
        pooling_kernel_size=spec.pooling,
        max_soft_tokens=spec.max_tokens,
        rescale_factor=spec.rescale_factor,
        do_normalize=bool(normal),
        **normal,
    )

    def run(frames: Frames) -> Patches:
        if frames.ndim == 3:
            found = process(frames, input_data_format="channels_last", return_tensors="pt")
            names = ("pixel_values", "image_position_ids", "num_soft_tokens_per_image")
        else:
            found = process(frames, do_sample_frames=False, return_tensors="pt")
            names = ("pixel_values_videos", "video_position_ids", "num_soft_tokens_per_video")
        values, places, tokens = (found[name] for name in names)
        return GemmaPatches(values.numpy(), places.numpy(), int(tokens[0])).flat()

    return run


def set_threads(count: int) -> None:
    """How many threads torch works with, for as long as the process lives."""
    import_module("torch").set_num_threads(count)


def versions() -> dict[str, str]:
    """What is compared with: versions, and the instructions that torch chose."""
    found = {}
    for name in ("transformers", "torch", "torchvision", "pillow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    if found["torch"] != "missing":
        found["cpu"] = str(import_module("torch").backends.cpu.get_cpu_capability())
    return found


def processor_class(name: str) -> Any:
    """A class of transformers, by its name.

    Raises:
        MissingTool: torch, torchvision or transformers is not installed.
    """
    missing = [module for module in ("torch", "torchvision", "transformers") if not importlib.util.find_spec(module)]
    if missing:
        raise MissingTool(f"the stock processor needs {', '.join(missing)}; install what the server runs with")
    return getattr(import_module(_MODULES[name]), name)


def as_shipped(processor: Any) -> Any:
    """The class without what :mod:`vision_bench.preprocess.plugins` replaced: ours is not compared with itself."""
    replaced = {name: found.replaces for name, found in vars(processor).items() if hasattr(found, "replaces")}
    return type(processor.__name__, (processor,), replaced) if replaced else processor


def _settings(spec: VideoSpec | ImageSpec) -> Mapping[str, Any]:
    return {
        "size": {"shortest_edge": spec.min_pixels, "longest_edge": spec.max_pixels},
        "image_mean": list(spec.mean),
        "image_std": list(spec.std),
        "rescale_factor": spec.rescale_factor,
        "patch_size": spec.patch_size,
        "temporal_patch_size": spec.temporal_patch_size,
        "merge_size": spec.merge_size,
    }
