"""bench.same_load: what makes two runs incomparable is named, and what they are about is not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.bench.run_folders import manifest

from vision_bench.bench.same_load import differences

Json = dict[str, Any]


def test_another_server_is_no_difference() -> None:
    """Nor another machine, day or folder: they are what is compared."""
    a = manifest(10)
    b = copy.deepcopy(a) | {"run_id": "vb-2", "environment": {"processors": 4}, "server": {"models": ["qwen"]}}
    b["workload"]["url"] = "http://elsewhere/chat"
    assert differences(a, b) == []


def set_value(run: Json) -> None:
    run["workload"]["fingerprint"] = "beef"
    run["workload"]["values"]["max_tokens"] = 32


def set_file(run: Json) -> None:
    run["workload"]["fingerprint"] = "beef"
    run["workload"]["files"] = {"a.mp4": "00"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda run: run.update(kind="realtime"), "kind: chat against realtime"),
        (set_value, "workload, max_tokens: 16 against 32"),
        (set_file, "the files that it names differ"),
        (lambda run: run["workload"].update(fingerprint="beef"), "fingerprint f00d against beef"),
        (lambda run: run["workload"].update(bodies=["z"]), "the hashes of the bodies differ"),
        (lambda run: run["workload"].update(wire="batch"), "wire: chat against batch"),
        (lambda run: run["workload"].update(slo="ttft_ms<5"), "slo: None against ttft_ms<5"),
        (lambda run: run["load"].update(seed=1), "seed: 0 against 1"),
        (lambda run: run["load"].update(warm_up=3), "warm-up: 0 requests against 3"),
        (lambda run: run["plan"][0].update(schedule_sha256="ff"), "step rate 10, schedule: 00 against ff"),
        (lambda run: run["plan"][0].update(concurrency=2), "concurrency: None against 2"),
        (lambda run: run["plan"].append(run["plan"][0]), "steps: 1 against 2"),
        (lambda run: run.update(plan={"sweep": 1}), "found their steps by themselves"),
    ],
)
def test_each_difference_is_named(change: Callable[[Json], Any], says: str) -> None:
    """With both values."""
    a, b = manifest(10), manifest(10)
    change(b)
    (said,) = differences(a, b)
    assert says in said


def test_a_long_value_is_cut() -> None:
    """A prompt of pages stays one line."""
    a, b = manifest(1), manifest(1)
    b["workload"]["fingerprint"] = "beef"
    b["workload"]["values"]["prompt"] = "word " * 500
    assert len(differences(a, b)[0]) < 150
