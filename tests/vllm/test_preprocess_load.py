"""The stock processor and ours behind a queue, with the transformers that vLLM runs with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.preprocess_cases import QWEN3_VIDEO
from tests.vllm.environment import VllmEnvironment

from vision_bench.bench.preprocess.interpreters import VARIABLE
from vision_bench.bench.rundir import read_manifest
from vision_bench.cli.main import main


def test_both_arms_work_in_one_python_and_give_the_same_bytes(
    vllm_environment: VllmEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stock is transformers' own; every byte was equal before a time was taken; every clip came back from each."""
    monkeypatch.setenv(VARIABLE, str(vllm_environment.python))
    (tmp_path / "spec.json").write_text(json.dumps(QWEN3_VIDEO))
    values = {"name": "small", "kind": "preprocess", "frames": 5, "width": 214, "height": 120, "arm": "both"}
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in (values | {"spec": "spec.json"}).items()]
    (tmp_path / "small.toml").write_text("".join(lines))
    load = ["--rate", "5", "--duration", "2", "--arrivals", "constant", "--out", str(tmp_path / "run")]
    with pytest.raises(SystemExit) as stopped:
        main(["run", str(tmp_path / "small.toml"), *load])
    assert stopped.value.code == 0
    server = read_manifest(tmp_path / "run")["server"]
    assert (server["equivalence"]["level"], server["equivalence"]["against"]) == ("E0", "stock")
    assert server["arms"]["stock"]["transformers"].startswith("5.19")
    summary = json.loads((tmp_path / "run" / "summary.json").read_bytes())
    assert [(step["arm"], step["requests"]["ok"]) for step in summary["steps"]] == [("stock", 10), ("ours", 10)]
