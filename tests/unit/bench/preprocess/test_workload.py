"""A preprocess workload file: what it says, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.preprocess_cases import QWEN3_VIDEO
from tests.unit.bench.preprocess.made import small_file

from vision_bench.bench.preprocess.workload import prepare
from vision_bench.bench.workload import WorkloadFile
from vision_bench.errors import InvalidMedia, InvalidRequest


def test_each_number_of_workers_runs_with_each_arm_in_turn() -> None:
    """Stock and ours stand next to each other, so that a machine that drifts drifts for both."""
    assert [(one["workers"], one["arm"]) for one in prepare(small_file()).variants] == [
        (1, "stock"),
        (1, "ours"),
        (2, "stock"),
        (2, "ours"),
    ]
    assert prepare(small_file(arm="ours", workers=[3])).variants == [{"arm": "ours", "workers": 3}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frames": 0}, "frames is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"clips": 0}, "clips is 0"),
        ({"workers": []}, "workers is empty"),
        ({"workers": [1, 0]}, "each number must be 1 or more"),
        ({"workers": [2, 2]}, "name each number once"),
        ({"arm": "theirs"}, "arm"),
        ({"frames": 2000, "width": 4000, "height": 4000}, "is the most"),
        ({"spec": "no/such/folder"}, "is not there"),
        ({"size": "480p"}, "unknown key 'size'"),
        ({"kind": "chat"}, "not 'preprocess'"),
    ],
)
def test_what_cannot_run_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    """The message holds the key, and its value where that is wrong."""
    with pytest.raises(InvalidRequest, match=message):
        prepare(small_file(**changes))


def test_a_clip_that_the_processor_refuses_is_refused_before_anything_starts() -> None:
    """One frame is less than a tubelet; settings without a size are none."""
    with pytest.raises(InvalidMedia, match="1 frame"):
        prepare(small_file(frames=1))
    with pytest.raises(InvalidRequest, match=r"size\.shortest_edge"):
        prepare(small_file(spec={key: value for key, value in QWEN3_VIDEO.items() if key != "size"}))


def test_the_fingerprint_follows_the_settings_wherever_they_lie(tmp_path: Path) -> None:
    """A checkpoint's folder that is edited gives another fingerprint; one that is moved does not."""
    values = small_file(spec="checkpoint").values
    found = []
    for place, patch in (("a", 16), ("b", 16), ("c", 14)):
        folder = tmp_path / place / "checkpoint"
        folder.mkdir(parents=True)
        (folder / "video_preprocessor_config.json").write_text(json.dumps(QWEN3_VIDEO | {"patch_size": patch}))
        found.append(prepare(WorkloadFile(tmp_path / place / "w.toml", values)).fingerprint)
    assert found[0] == found[1] != found[2]
