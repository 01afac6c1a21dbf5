"""Gemma 4's patches: worked by hand, the oracle, and the fast way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.preprocess_cases import COMPILED, GEMMA_IMAGE, GEMMA_VIDEO, noise, same_bits

from vision_bench.errors import InvalidMedia, InvalidRequest
from vision_bench.preprocess.gemma import GemmaPreprocessor, GemmaSpec, plain


def test_a_frame_that_has_its_size_is_only_cut_and_padded() -> None:
    """48x96 pixels under a budget of two tokens, were there one: 3 x 6 patches, row by row, channels last."""
    spec = GemmaSpec("Gemma4VideoProcessor", 16, 3, 2, 1 / 255, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    frames = noise(1, 2, 48, 96)
    found = plain(frames, spec)
    assert found.pixel_values.shape == (2, 18, 768) and found.tokens == 2
    second_row_third_patch = frames[1, 16:32, 32:48].astype(np.float32) / np.float32(255)
    assert same_bits(found.pixel_values[1, 6 + 2], second_row_third_patch.reshape(-1))
    assert found.positions[1, 6 + 2].tolist() == [2, 1]


def test_what_is_left_of_the_budget_is_nothing_and_nowhere() -> None:
    """480p under 70 tokens is 528x288: 66 tokens, 594 of 630 patches."""
    spec = GemmaSpec.from_config(GEMMA_VIDEO, "video")
    found = plain(noise(2, 1, 480, 854), spec)
    assert found.tokens == 66 and found.pixel_values.shape == (1, 630, 768)
    assert not found.pixel_values[0, 594:].any() and (found.positions[0, 594:] == -1).all()
    assert found.positions[0, 593].tolist() == [32, 17] and (found.positions[0, :594] >= 0).all()


def test_images_are_multiplied_and_videos_divided() -> None:
    """1/255 in float32 is not what division by 255 gives: the stock classes differ in the last bit of some values."""
    image, video = GemmaSpec.from_config(GEMMA_IMAGE, "image"), GemmaSpec.from_config(GEMMA_VIDEO, "video")
    assert same_bits(image.table()[0], np.arange(256, dtype=np.float32) * np.float32(1 / 255))
    assert same_bits(video.table()[0], np.arange(256, dtype=np.float32) / np.float32(255))
    assert not same_bits(image.table(), video.table())


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("shape", [(3, 480, 854), (2, 854, 480), (1, 30, 700), (2, 48, 96), (1, 1080, 300)])
def test_the_fast_way_has_the_oracles_bits(compiled: bool, shape: tuple[int, int, int]) -> None:
    """Shrunk, enlarged, portrait, a strip of one row of tokens; memory of an earlier call leaves nothing behind."""
    for part, config in (("video", GEMMA_VIDEO), ("image", GEMMA_IMAGE)):
        spec = GemmaSpec.from_config(config, part)  # type: ignore[arg-type]
        with GemmaPreprocessor(spec, threads=2, compiled=compiled) as preprocess:
            preprocess(noise(9, 3, 400, 400))
            found, expected = preprocess(noise(1, *shape)), plain(noise(1, *shape), spec)
        assert same_bits(found.pixel_values, expected.pixel_values)
        assert (found.positions == expected.positions).all() and found.tokens == expected.tokens


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_soft_tokens": 100}, "100; it must be one of 70"),
        ({"max_soft_tokens": None}, "no max_soft_tokens"),
        ({"video_processor_type": "Qwen3VLVideoProcessor"}, "use the stock processor"),
        ({"do_rescale": False}, "do_rescale is False"),
        ({"resample": 2}, "resample is 2"),
        ({"image_mean": None}, "image_mean"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(changes: dict[str, Any], message: str) -> None:
    """By the name of the key."""
    with pytest.raises(InvalidRequest, match=message):
        GemmaSpec.from_config(GEMMA_VIDEO | changes, "video")


def test_settings_are_read_from_a_checkpoints_folder(tmp_path: Path) -> None:
    """One file with a part for each."""
    parts = {"image_processor": GEMMA_IMAGE, "video_processor": GEMMA_VIDEO}
    (tmp_path / "processor_config.json").write_text(json.dumps(parts))
    assert GemmaSpec.from_config(tmp_path, "image").max_tokens == 280
    assert GemmaSpec.from_config(tmp_path, "video").max_tokens == 70


def test_bad_frames_are_refused() -> None:
    """As everywhere: the value and the remedy."""
    preprocess = GemmaPreprocessor(GemmaSpec.from_config(GEMMA_VIDEO, "video"), compiled=False)
    with pytest.raises(InvalidMedia, match="float32"):
        preprocess(noise(1, 1, 48, 48).astype(np.float32))  # type: ignore[arg-type]
    with pytest.raises(InvalidMedia, match="nothing in them"):
        preprocess(noise(1, 1, 0, 48))
