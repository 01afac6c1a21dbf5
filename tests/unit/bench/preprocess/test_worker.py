"""A worker's side of the lines, without a process."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from typing import Any

import pytest
from tests.unit.bench.preprocess.made import small_file

from vision_bench.bench.preprocess.worker import Job, digest, make_clip, processor, serve
from vision_bench.bench.preprocess.workload import prepare
from vision_bench.errors import MissingTool
from vision_bench.preprocess import reference


def small_job(**changes: Any) -> Job:
    prepared = prepare(small_file())
    given = {"arm": "ours", "spec": asdict(prepared.spec), "frames": 3, "width": 64, "height": 40, "clips": 2}
    return Job(**given | {"threads": 1} | changes)


def spoken(job: Job, *lines: str) -> list[Any]:
    """What it answers to a job and these lines."""
    answers = io.StringIO()
    serve([json.dumps(asdict(job)), *lines], answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def test_it_tells_of_its_output_and_then_of_each_clip() -> None:
    """Digests as the oracle has them, of clips that differ; then a time a line."""
    job = small_job(with_oracle=True)
    hello, *answers = spoken(job, "0\n", "1\n", "0\n")
    assert hello["digests"] == hello["oracle"]
    assert len(set(hello["digests"])) == 2
    assert len(answers) == 3 and all(answer["work_ns"] > 0 for answer in answers)
    assert "python" in hello["versions"]


def test_a_digest_is_of_every_byte_and_of_the_grid() -> None:
    """Half the values of another sign, or rows under another grid, are not equal."""
    spec = prepare(small_file()).spec
    patches = reference.video(make_clip(small_job(), 0), spec)
    values = patches.pixel_values.copy()
    values[-1, -1] += 1
    assert digest(patches) != digest(patches._replace(pixel_values=values))
    assert digest(patches) != digest(patches._replace(grid_thw=patches.grid_thw[::-1]))


def test_stock_is_never_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without transformers there is no stock arm; the NumPy reference does not stand in."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingTool, match="transformers"):
        processor(small_job(arm="stock"), prepare(small_file()).spec)
