"""Settings are the checkpoint's own; what cannot be honoured is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.preprocess_cases import QWEN2_IMAGE, QWEN2_VIDEO, QWEN3_VIDEO

from vision_bench.errors import InvalidRequest
from vision_bench.preprocess.geometry import Grid, Size
from vision_bench.preprocess.spec import ImageSpec, VideoSpec


def test_every_setting_comes_from_the_file(tmp_path: Path) -> None:
    """A file, its folder and its content give the same."""
    (tmp_path / "video_preprocessor_config.json").write_text(json.dumps(QWEN3_VIDEO))
    spec = VideoSpec.from_config(tmp_path)
    assert spec == VideoSpec.from_config(tmp_path / "video_preprocessor_config.json")
    assert spec == VideoSpec.from_config(QWEN3_VIDEO)
    assert (spec.patch_size, spec.temporal_patch_size, spec.merge_size) == (16, 2, 2)
    assert (spec.min_pixels, spec.max_pixels) == (4096, 25_165_824)
    assert spec.mean == spec.std == (0.5, 0.5, 0.5)
    assert spec.rescale_factor == 1 / 255
    assert (spec.factor, spec.patch_values) == (32, 1536)
    assert spec.cap_pixels_per_frame is False


def test_the_part_of_a_joint_file_wins(tmp_path: Path) -> None:
    """processor_config.json is used where it has a part for the video, else passed over, as in transformers."""
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({**QWEN2_IMAGE, **QWEN2_VIDEO}))
    (tmp_path / "processor_config.json").write_text(json.dumps({"processor_class": "Qwen3VLProcessor"}))
    assert VideoSpec.from_config(tmp_path).patch_size == 14
    both = {"video_processor": QWEN3_VIDEO, "image_processor": QWEN2_IMAGE}
    (tmp_path / "processor_config.json").write_text(json.dumps(both))
    assert VideoSpec.from_config(tmp_path).patch_size == 16
    assert ImageSpec.from_config(tmp_path).patch_size == 14


def test_old_limits_win_over_size_in_the_qwen2_classes_alone() -> None:
    """Checkpoints carry both; the stock classes disagree on which counts."""
    old = {"min_pixels": 3136, "max_pixels": 100_000}
    spec = VideoSpec.from_config({**QWEN2_VIDEO, **old})
    assert (spec.min_pixels, spec.max_pixels) == (3136, 100_000)
    newer = VideoSpec.from_config({**QWEN3_VIDEO, **old})
    assert (newer.min_pixels, newer.max_pixels) == (4096, 25_165_824)


def test_limits_are_of_a_frame_or_of_the_clip_by_class() -> None:
    """The same 100 frames: a Qwen2 frame keeps its size, a Qwen3 frame shares the clip's volume."""
    size = Size(480, 854)
    assert VideoSpec.from_config(QWEN2_VIDEO).grid(100, size) == Grid(50, 34, 60)
    assert VideoSpec.from_config(QWEN3_VIDEO).target(100, size) == Size(352, 640)
    assert ImageSpec.from_config(QWEN2_IMAGE).grid(size) == Grid(1, 34, 60)


def test_a_cap_changes_sizes_only_where_it_is_switched_on() -> None:
    """``cap_pixels_per_frame`` with the class's own token limit, or the file's."""
    size = Size(1080, 1920)
    free = VideoSpec.from_config(QWEN3_VIDEO)
    capped = VideoSpec.from_config({**QWEN3_VIDEO, "cap_pixels_per_frame": True})
    tighter = VideoSpec.from_config({**QWEN3_VIDEO, "cap_pixels_per_frame": True, "max_video_tokens": 100})
    targets = [spec.target(8, size) for spec in (free, capped, tighter)]
    assert targets == [Size(1088, 1920), Size(640, 1152), Size(224, 416)]
    qwen2 = VideoSpec.from_config({**QWEN2_VIDEO, "cap_pixels_per_frame": True})
    assert qwen2.target(8, size) == VideoSpec.from_config(QWEN2_VIDEO).target(8, size)
    assert qwen2.target(768, size) < qwen2.target(8, size)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"video_processor_type": "LlavaVideoProcessor"}, "LlavaVideoProcessor.*use the stock processor"),
        ({"video_processor_type": None}, "names no video_processor_type; pass processor="),
        ({"patch_size": None}, "no patch_size; take the one"),
        ({"merge_size": 0}, "merge_size is 0"),
        ({"patch_size": True}, "patch_size is True"),
        ({"size": {"shortest_edge": 4096}}, "no size.longest_edge"),
        ({"size": {"shortest_edge": 10, "longest_edge": 5}}, "shortest_edge 10 is more than longest_edge 5"),
        ({"image_mean": 0.5}, "image_mean is 0.5; it must be three numbers"),
        ({"image_std": [0.5, 0, 0.5]}, "each must be more than zero"),
        ({"image_std": [0.5, 1e-320, 0.5]}, "each must be more than zero"),
        ({"image_mean": [0.5, float("nan"), 0.5]}, "image_mean is .*nan.*; it must be three numbers"),
        ({"image_std": [0.5, float("inf"), 0.5]}, "image_std is .*inf.*; it must be three numbers"),
        ({"image_mean": [0.5, 10**400, 0.5]}, "it must be three numbers"),
        ({"image_mean": [0.5, True, 0.5]}, "it must be three numbers"),
        *(
            ({"rescale_factor": bad}, "rescale_factor is .*; it must be a number above zero")
            for bad in (0, -1, None, True, "x", [1], 1e-320, float("nan"), float("inf"), 10**400)
        ),
        ({"cap_pixels_per_frame": "false"}, "cap_pixels_per_frame is 'false'; it must be true or false"),
        ({"resample": 2}, "resample is 2; only 3"),
        ({"resample": []}, r"resample is \[\]; only 3"),
        ({"do_resize": False}, "do_resize is False"),
    ],
)
def test_what_cannot_be_honoured_is_refused(change: dict[str, Any], message: str) -> None:
    """Silence would give other bits than the stock processor."""
    with pytest.raises(InvalidRequest, match=message):
        VideoSpec.from_config({**QWEN3_VIDEO, **change})


def test_a_class_can_be_named_by_the_caller() -> None:
    """Files of older checkpoints name the image processor alone."""
    unnamed = {key: value for key, value in QWEN2_VIDEO.items() if key != "video_processor_type"}
    spec = VideoSpec.from_config(unnamed, processor="Qwen2VLVideoProcessor")
    assert spec == VideoSpec.from_config(QWEN2_VIDEO)


def test_files_that_are_no_settings_are_refused(tmp_path: Path) -> None:
    """Nothing there, no JSON, no object: each with its path."""
    with pytest.raises(InvalidRequest, match="holds none of"):
        VideoSpec.from_config(tmp_path)
    with pytest.raises(InvalidRequest, match="cannot be read"):
        VideoSpec.from_config(tmp_path / "missing.json")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(InvalidRequest, match="holds a list"):
        VideoSpec.from_config(tmp_path / "list.json")
    (tmp_path / "half.json").write_text("{")
    with pytest.raises(InvalidRequest, match="cannot be read as JSON"):
        ImageSpec.from_config(tmp_path / "half.json")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(InvalidRequest, match="cannot be read as JSON"):
        VideoSpec.from_config(tmp_path / "deep.json")
    for other in (None, 3, [], b"folder"):
        with pytest.raises(InvalidRequest, match=f"settings are a {type(other).__name__}; give a folder, a file"):
            VideoSpec.from_config(other)  # type: ignore[arg-type]
