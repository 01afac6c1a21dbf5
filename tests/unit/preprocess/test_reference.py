"""The oracle: digests of the stock processors, the order of values in a patch, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.preprocess_cases import (
    QWEN2_IMAGE,
    QWEN3_VIDEO,
    VIDEO_CONFIGS,
    golden_cases,
    golden_frames,
    noise,
    sha256,
    small_image,
    small_video,
)

from vision_bench.errors import InvalidMedia
from vision_bench.preprocess import reference
from vision_bench.preprocess.geometry import Size
from vision_bench.preprocess.spec import ImageSpec, VideoSpec


@pytest.mark.parametrize("case", golden_cases())
def test_the_stock_processors_digests(case: dict[str, Any]) -> None:
    """float32 bytes of transformers 5.19 on torch 2.13 (AVX2), made by them and not by us."""
    frames = golden_frames(case)
    assert sha256(frames) == case["frames_sha256"]
    patches = reference.video(frames, VideoSpec.from_config(VIDEO_CONFIGS[case["family"]]))
    assert list(patches.pixel_values.shape) == case["shape"]
    assert patches.grid_thw.tolist() == case["grid_thw"]
    assert patches.pixel_values.ravel()[:4].tolist() == case["first"]
    assert sha256(patches.pixel_values) == case["sha256"]


def test_a_value_is_where_the_encoder_looks_for_it() -> None:
    """Row: token row, token column, row and column in the token. Column: channel, frame, row, column of the patch."""
    frames = noise(1, 4, 64, 96)
    spec = small_video()
    patches = reference.video(frames, spec)
    assert patches.grid_thw.tolist() == [2, 4, 6]
    values = patches.pixel_values.reshape(2, 2, 3, 2, 2, 3, 2, 16, 16)
    t, y, x, c = 3, 37, 75, 2
    found = values[t // 2, y // 32, x // 32, y % 32 // 16, x % 32 // 16, c, t % 2, y % 16, x % 16]
    assert found == reference.table(spec)[c, frames[t, y, x, c]]


def test_an_odd_frame_out_is_repeated() -> None:
    """The last tubelet of five frames holds the fifth twice."""
    patches = reference.video(noise(2, 5, 64, 64), small_video())
    last = patches.pixel_values.reshape(3, 16, 3, 2, 256)[-1]
    assert (last[:, :, 0] == last[:, :, 1]).all()


def test_an_image_is_repeated_through_time() -> None:
    """A still image fills its tubelet."""
    patches = reference.image(noise(3, 56, 84), small_image())
    assert patches.grid_thw.tolist() == [1, 4, 6]
    halves = patches.pixel_values.reshape(24, 3, 2, 196)
    assert (halves[:, :, 0] == halves[:, :, 1]).all()


def test_a_frame_of_the_right_size_is_not_touched() -> None:
    """Undoing the normalisation gives the frame back."""
    frames = noise(4, 2, 32, 64)
    values = reference.video(frames, small_video()).pixel_values.reshape(1, 2, 2, 2, 3, 2, 16, 16)
    back = np.round(values * 127.5 + 127.5).astype(np.uint8)
    assert (back.transpose(5, 2, 6, 1, 3, 7, 4, 0).reshape(2, 32, 64, 3) == frames).all()


def test_normalising_is_one_subtraction_and_one_division_in_float32() -> None:
    """(x - 255 m) / (255 s), each rounded: 768 numbers for CLIP's constants."""
    table = reference.table(ImageSpec.from_config(QWEN2_IMAGE))
    assert table.dtype == np.float32
    mean, std = np.float32(0.4578275) * np.float32(255), np.float32(0.26130258) * np.float32(255)
    assert table[1, 200] == (np.float32(200) - mean) / std


def test_the_pil_backend_divides_by_255_first_and_in_float64() -> None:
    """One value by hand; both backends are within half a millionth of each other, and seldom equal."""
    spec = ImageSpec.from_config(QWEN2_IMAGE)
    one, other = reference.table(spec, "pil"), reference.table(spec)
    rescaled = np.float32(200 * (1 / 255))
    assert one[1, 200] == (rescaled - np.float32(0.4578275)) / np.float32(0.26130258)
    assert 0 < np.abs(one - other).max() < 5e-7


def test_the_pil_backend_filters_with_pillow() -> None:
    """Its frames are Pillow's own, its patches lie as the other backend's do."""
    spec, pixels = small_image(), noise(5, 100, 90)
    size = spec.target(Size(100, 90))
    resized = np.asarray(Image.fromarray(pixels).resize((size.width, size.height), Image.Resampling.BICUBIC))
    expected = reference.normalise(reference.patchify(np.stack([resized, resized]), spec), spec, "pil")
    found = reference.image(pixels, spec, "pil")
    assert (found.pixel_values == expected).all()
    assert found.grid_thw.tolist() == reference.image(pixels, spec).grid_thw.tolist()


def test_bfloat16_rounds_half_to_even() -> None:
    """Halves between two bfloat16 go to the even one, and the sign stays."""
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0xBF808000, 0x80000000], np.uint32)
    rounded = reference.to_bfloat16(bits.view(np.float32))
    assert [hex(value) for value in rounded] == ["0x3f80", "0x3f82", "0x3f81", "0xbf80", "0x8000"]


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([[1]], "are a list; give a NumPy array"),
        (np.zeros((4, 64, 64, 3), np.float32), "are float32; give uint8"),
        (np.zeros((64, 64, 3), np.uint8), r"shape \(64, 64, 3\); give \(T, H, W, 3\)"),
        (np.zeros((4, 3, 64, 64), np.uint8), "red, green and blue last"),
        (np.zeros((0, 64, 64, 3), np.uint8), "nothing in them"),
        (np.zeros((4, 64, 64, 4), np.uint8)[..., :3], "np.ascontiguousarray"),
        (np.zeros((4, 64, 128, 3), np.uint8)[:, :, ::2], "np.ascontiguousarray"),
        (np.zeros((1, 64, 64, 3), np.uint8), "1 frame.*takes 2 or more"),
        (np.zeros((2, 10, 3000, 3), np.uint8), "more than 200 times"),
    ],
)
def test_bad_frames_are_refused_with_a_remedy(frames: Any, message: str) -> None:
    """What the stock processor would refuse, or would misread in silence."""
    with pytest.raises(InvalidMedia, match=message):
        reference.video(frames, VideoSpec.from_config(QWEN3_VIDEO))
