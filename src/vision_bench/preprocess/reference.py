"""The stock arithmetic, plain and slow: the oracle that the fast way is held to, bit for bit.

What is meant is transformers' processors on a CPU: resize in 8 bits, normalise in float32, cut into patches. For images
they come with two backends, torchvision and PIL, which filter with other weights and normalise by other steps; for
videos there is torchvision alone. The first is written out here in NumPy; for the second Pillow itself filters.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vision_bench.errors import InvalidMedia
from vision_bench.preprocess.geometry import Size
from vision_bench.preprocess.resample import Axis, bicubic_axis
from vision_bench.preprocess.spec import ImageSpec, Spec, VideoSpec

Frames = NDArray[np.uint8]
Backend = Literal["torchvision", "pil"]
"""Whose bits: the stock image processors come in two kinds."""


class Patches(NamedTuple):
    """What a vision encoder takes."""

    pixel_values: NDArray[Any]
    """(N, D) a row a patch: token rows, token columns, then the patches of a token; a column a channel, frame, row and
    column of the patch."""
    grid_thw: NDArray[np.int64]
    """(3,) tubelets, patches down, patches across; their product is N."""


def video(frames: Frames, spec: VideoSpec) -> Patches:
    """A clip as the stock video processor gives it.

    Args:
        frames: (T, H, W, 3) uint8, RGB, already chosen.
        spec: the checkpoint's.

    Returns:
        float32 patches. An odd frame out is repeated.

    Raises:
        InvalidMedia: frames that the stock processor would refuse or misread.
    """
    check_frames(frames, 4)
    size = spec.target(len(frames), Size(*frames.shape[1:3]))
    return _patches(resize(frames, size), spec)


def image(pixels: Frames, spec: ImageSpec, backend: Backend = "torchvision") -> Patches:
    """An image as the stock image processor gives it: (H, W, 3) uint8 in, repeated through time, float32 patches out.

    Raises:
        InvalidMedia: pixels that the stock processor would refuse or misread.
    """
    check_frames(pixels, 3)
    size = spec.target(Size(*pixels.shape[:2]))
    return _patches(resize(pixels[None], size, backend), spec, backend)


def check_frames(frames: object, dimensions: int) -> None:
    """Refuse what is not packed 8-bit RGB, saying what to do about it.

    Raises:
        InvalidMedia: not an array, another dtype or shape, nothing in it, or pixels that do not lie side by side.
    """
    wanted = "(T, H, W, 3)" if dimensions == 4 else "(H, W, 3)"
    if not isinstance(frames, np.ndarray):
        raise InvalidMedia(f"frames are a {type(frames).__name__}; give a NumPy array {wanted} of uint8")
    if frames.dtype != np.uint8:
        raise InvalidMedia(f"frames are {frames.dtype}; give uint8, 0 to 255, as the decoder made them")
    if frames.ndim != dimensions or frames.shape[-1] != 3:
        raise InvalidMedia(f"frames have the shape {frames.shape}; give {wanted}, red, green and blue last")
    if frames.size == 0:
        raise InvalidMedia(f"frames of the shape {frames.shape} have nothing in them")
    if frames.strides[-1] != 1 or (frames.shape[-2] > 1 and frames.strides[-2] != 3):
        raise InvalidMedia(
            f"the pixels of a row do not lie side by side (strides {frames.strides}); pass np.ascontiguousarray(frames)"
        )


def resize(frames: Frames, size: Size, backend: Backend = "torchvision") -> Frames:
    """(T, H, W, 3) to (T, *size, 3). As torch: across, then down, rounded to 8 bits after each."""
    if backend == "pil":
        return _filtered_by_pillow(frames, size)
    across = bicubic_axis(frames.shape[2], size.width)
    down = bicubic_axis(frames.shape[1], size.height)
    wide = frames if across is None else _filtered(frames, across, 2)
    return wide if down is None else _filtered(wide, down, 1)


def _filtered_by_pillow(frames: Frames, size: Size) -> Frames:
    resized = [
        Image.fromarray(np.ascontiguousarray(frame)).resize((size.width, size.height), Image.Resampling.BICUBIC)
        for frame in frames
    ]
    return np.stack([np.asarray(one) for one in resized])


def _filtered(frames: Frames, axis: Axis, dimension: int) -> Frames:
    shape = [1, 1, 1, 1]
    shape[dimension] = -1
    source = list(frames.shape)
    source[dimension] = len(axis.starts)
    total = np.full(source, 1 << (axis.precision - 1), np.int32)
    for tap in range(axis.taps):
        total += np.take(frames, axis.starts + tap, axis=dimension) * axis.weights[:, tap].astype(np.int32).reshape(
            shape
        )
    total >>= axis.precision
    return np.clip(total, 0, 255, out=total).astype(np.uint8)


def shift_and_scale(spec: Spec, backend: Backend = "torchvision") -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(3,) and (3,): what is taken from a value, and what the rest is divided by. In float32, as stock.

    torchvision takes them of values 0 to 255; PIL of values that were brought to 0..1 before, in float64.
    """
    back = np.float32(1.0 / spec.rescale_factor) if backend == "torchvision" else np.float32(1)
    return np.array(spec.mean, np.float32) * back, np.array(spec.std, np.float32) * back


def levels(spec: Spec) -> NDArray[np.float32]:
    """(D,) how many 8-bit levels a difference of 1 is, in each column."""
    return np.repeat(shift_and_scale(spec)[1], spec.patch_values // 3)


def table(spec: Spec, backend: Backend = "torchvision") -> NDArray[np.float32]:
    """(3, 256) what each 8-bit value of each channel becomes: 768 numbers are all that normalising can give."""
    shift, scale = shift_and_scale(spec, backend)
    values = np.arange(256, dtype=np.float32)
    if backend == "pil":
        values = (np.arange(256, dtype=np.float64) * spec.rescale_factor).astype(np.float32)
    return (values - shift[:, None]) / scale[:, None]


def to_bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper halves of finite float32 values, rounded half to even: NumPy has no bfloat16, torch views these so."""
    bits = values.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def _patches(frames: Frames, spec: Spec, backend: Backend = "torchvision") -> Patches:
    """Cut resized frames (T, H, W, 3) into patches and normalise them."""
    missing = -len(frames) % spec.temporal_patch_size
    whole = np.concatenate([frames, np.repeat(frames[-1:], missing, axis=0)]) if missing else frames
    t, (h, w) = len(whole) // spec.temporal_patch_size, whole.shape[1:3]
    values = normalise(patchify(whole, spec), spec, backend)
    return Patches(values, np.array([t, h // spec.patch_size, w // spec.patch_size]))


def normalise(cut: Frames, spec: Spec, backend: Backend = "torchvision") -> NDArray[np.float32]:
    """(N, D) 8-bit patches as float32, looked up in :func:`table`."""
    normalised = np.empty(cut.shape, np.float32)
    of_a_channel = spec.patch_values // 3
    for channel, values in enumerate(table(spec, backend)):
        columns = slice(channel * of_a_channel, (channel + 1) * of_a_channel)
        normalised[:, columns] = values[cut[:, columns]]
    return normalised


def patchify(frames: Frames, spec: Spec) -> Frames:
    """(T, H, W, 3), all of them whole patches and tubelets, to (N, D)."""
    tubelet, patch, merge = spec.temporal_patch_size, spec.patch_size, spec.merge_size
    t, h, w, _ = frames.shape
    cut = frames.reshape(t // tubelet, tubelet, h // spec.factor, merge, patch, w // spec.factor, merge, patch, 3)
    return cut.transpose(0, 2, 5, 3, 6, 8, 1, 4, 7).reshape(-1, spec.patch_values)
