"""The methods that take the place of transformers' own, and what each of them leaves to the method it replaced."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from vision_bench.errors import InvalidRequest
from vision_bench.preprocess.fast import Kind
from vision_bench.preprocess.plugins.work import Work
from vision_bench.preprocess.reference import Frames, Patches
from vision_bench.preprocess.spec import BICUBIC, ImageSpec, VideoSpec

Method = Callable[..., Any]
Settings = Mapping[str, Any]

STEPS = ("resize", "patchify", "rescale_and_normalize", "rescale", "normalize", "convert_to_rgb", "process_image")
"""Methods that ours stands for. A class that changes one of them is left to its own ways."""

READ = ("do_resize", "do_rescale", "do_normalize", "rescale_factor", "image_mean", "image_std")
READ_SIZES = ("patch_size", "temporal_patch_size", "merge_size")
"""Settings of a call that decide what comes out; ``size``, ``resample`` and the caps of videos are read beside them."""


class Outputs(NamedTuple):
    """What a processor calls the two things it gives."""

    values: str
    grid: str


VIDEOS = Outputs("pixel_values_videos", "video_grid_thw")
IMAGES = Outputs("pixel_values", "image_grid_thw")


def replace(processor: Any, name: str, make: Callable[[Method], Method]) -> None:
    """Put ``make(stock method)`` into a class; :func:`restore` takes it out."""
    original = getattr(processor, name)
    method: Any = functools.wraps(original)(make(original))
    method.replaces = original
    setattr(processor, name, method)


def restore(processor: Any) -> None:
    """Every method of the class that was replaced, as it was."""
    for name, method in list(vars(processor).items()):
        if hasattr(method, "replaces"):
            delattr(processor, name)
            if getattr(processor, name, None) is not method.replaces:  # its own, not one of a class above it
                setattr(processor, name, method.replaces)


def prepare_videos(original: Method) -> Method:
    """Frames as tensors with the channels in front, left where they lie: stock copies them, and we would copy back."""

    def _prepare_input_videos(
        self: Any,
        videos: Any,
        do_convert_rgb: bool | None = None,
        input_data_format: Any = None,
        device: Any = None,
    ) -> Any:
        if device is None and input_data_format is None and all(_has_channels_last(one) for one in videos):
            torch = import_module("torch")
            return [torch.as_tensor(one).permute(0, 3, 1, 2) for one in videos]
        return original(self, videos, do_convert_rgb, input_data_format, device)

    return _prepare_input_videos


def preprocess_videos(processor: Any, work: Work) -> Callable[[Method], Method]:
    """Clips to ``pixel_values_videos`` and ``video_grid_thw``."""
    ours = _Ours(processor, work, VideoSpec, VIDEOS)

    def make(original: Method) -> Method:
        def _preprocess(self: Any, videos: Sequence[Any], **settings: Any) -> Any:
            stock = functools.partial(original, self, **settings)
            found = ours.batch(self, videos, settings, stock)
            return stock([one.contiguous() for one in videos]) if found is None else found

        return _preprocess

    return make


def preprocess_images(processor: Any, work: Work) -> Callable[[Method], Method]:
    """Images to ``pixel_values`` and ``image_grid_thw``."""
    ours = _Ours(processor, work, ImageSpec, IMAGES)

    def make(original: Method) -> Method:
        def _preprocess(self: Any, images: Sequence[Any], **settings: Any) -> Any:
            stock = functools.partial(original, self, **settings)
            found = ours.batch(self, images, settings, stock)
            return stock(images) if found is None else found

        return _preprocess

    return make


@dataclass(frozen=True, slots=True)
class _Ours:
    """One stock class's work, done by us."""

    processor: Any
    work: Work
    spec: type[VideoSpec] | type[ImageSpec]
    outputs: Outputs

    def batch(self, caller: Any, inputs: Sequence[Any], settings: Settings, stock: Method) -> Any | None:
        """What the stock method would return; None where it is to do it itself.

        Args:
            caller: the processor whose method was called.
            inputs: tensors, a clip or an image each.
            settings: of this call.
            stock: its method with these settings, waiting for inputs.
        """
        if any(getattr(type(caller), step, None) is not getattr(self.processor, step, None) for step in STEPS):
            self.work.leave("another class")
            return None
        if not inputs or not all(_is_ready(one) for one in inputs):
            self.work.leave("dtype, channels or device")
            return None
        config = _config(settings)
        if self.spec is VideoSpec:
            config["cap_pixels_per_frame"] = settings.get("cap_pixels_per_frame")
            config["max_video_tokens"] = caller.max_video_tokens
        try:
            spec = self.spec.from_config(config, processor=self.processor.__name__)
        except InvalidRequest:
            self.work.leave("settings")
            return None
        dtype: Kind = "bfloat16" if self.work.rounds and settings.get("return_tensors") == "pt" else "float32"
        frames = [_packed(one) for one in inputs]
        found = self.work.patches(spec, frames, _alone(stock, self.outputs), dtype)
        return None if found is None else _batch(found, self.outputs, settings)


def _has_channels_last(video: Any) -> bool:
    """Whether stock would take these for 8-bit frames (T, H, W, 3)."""
    return str(video.dtype) in {"uint8", "torch.uint8"} and video.shape[-1] == 3 and video.shape[1] not in {1, 3}


def _is_ready(tensor: Any) -> bool:
    """8-bit RGB in memory, channels before height and width."""
    return str(tensor.dtype) == "torch.uint8" and tensor.shape[-3] == 3 and tensor.device.type == "cpu"


def _packed(tensor: Any) -> Frames:
    """(..., H, W, 3), the pixels of a row side by side; copied only where they are not."""
    last = tensor.movedim(-3, -1)
    frames: Frames = (last if last.stride()[-2:] == (3, 1) else last.contiguous()).numpy()
    return frames


def _config(settings: Settings) -> dict[str, Any]:
    """The settings of one call, named as in a checkpoint's file."""
    resample, size = settings.get("resample"), settings.get("size")
    return {
        **{name: settings.get(name) for name in READ + READ_SIZES},
        # torchvision names the filter by a word, Pillow by a number.
        "resample": BICUBIC if getattr(resample, "value", resample) in {BICUBIC, "bicubic"} else str(resample),
        "size": {edge: getattr(size, edge, None) for edge in ("shortest_edge", "longest_edge")},
    }


def _alone(stock: Method, outputs: Outputs) -> Callable[[Frames], Patches]:
    """The stock method as a function of one input."""

    def run(frames: Frames) -> Patches:
        tensor = import_module("torch").from_numpy(frames).movedim(-1, -3).contiguous()
        found = stock([tensor])
        return Patches(_array(found[outputs.values]), _array(found[outputs.grid])[0])

    return run


def _array(found: Any) -> Any:
    return found.numpy() if hasattr(found, "numpy") else found


def _batch(found: Patches, outputs: Outputs, settings: Settings) -> Any:
    """As stock hands it on."""
    torch = import_module("torch")
    values = torch.from_numpy(found.pixel_values)
    if found.pixel_values.dtype == np.uint16:
        values = values.view(torch.bfloat16)
    data = {outputs.values: values, outputs.grid: torch.from_numpy(found.grid_thw)}
    feature = import_module("transformers.feature_extraction_utils").BatchFeature
    return feature(data=data, tensor_type=settings.get("return_tensors"))
