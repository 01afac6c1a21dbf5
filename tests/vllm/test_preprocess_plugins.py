"""Our preprocessing inside transformers and inside vLLM: the same bytes and the same answers, or left alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.preprocess_cases import QWEN3_VIDEO
from tests.vllm.environment import VllmEnvironment
from tests.vllm.inside import run

PROCESSORS = Path(__file__).parent / "processors.py"


def qwen3_vl(source: Path, folder: Path) -> Path:
    """The processor of a Qwen3-VL, with the tokenizer of the tiny checkpoint."""
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "preprocessor_config.json", "config.json"):
        shutil.copy(source / name, folder / name)
    named = {"processor_class": "Qwen3VLProcessor"}
    for name in ("tokenizer_config.json", "preprocessor_config.json"):
        settings = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(settings | named))
    (folder / "video_preprocessor_config.json").write_text(json.dumps(QWEN3_VIDEO | named))
    return folder


@pytest.mark.parametrize("family", ["qwen3-omni", "qwen3-vl"])
def test_autoprocessor_gives_the_same_bytes_on_and_off(
    family: str, vllm_environment: VllmEnvironment, tmp_path: Path
) -> None:
    """30 calls: every output equal in type, shape and bytes; ours where it can be; stock's own errors; off is off."""
    checkpoint = vllm_environment.checkpoint
    if family == "qwen3-vl":
        checkpoint = qwen3_vl(checkpoint, tmp_path / "qwen3-vl")
    done = run(vllm_environment, PROCESSORS, checkpoint)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    video = "Qwen3VLVideoProcessor" if family == "qwen3-vl" else "Qwen2VLVideoProcessor"
    assert found["classes"] == [video, "Qwen2VLImageProcessor"]
    assert found["reason"] is None
    unequal = {name: case["outputs"] for name, case in found["cases"].items() if not case["equal"]}
    assert not unequal
    wrong = {name: case["counts"] for name, case in found["cases"].items() if not as_named(name, case)}
    assert not wrong
    assert found["off_again"]
    assert found["compares_with_stock"]


def as_named(name: str, case: dict[str, Any]) -> bool:
    """Whether inputs went where the case's name says; what stock refuses (one frame, in Qwen3-VL) is left to it."""
    ours = [kind for kind in case["counts"] if not kind.startswith("left")]
    left = [kind for kind in case["counts"] if kind.startswith("left")]
    return bool(left and not ours) if name.startswith("left") or "error" in case["outputs"] else bool(ours and not left)
