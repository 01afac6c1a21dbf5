"""bench.compare: folders with known latencies give known words."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.unit.bench.run_folders import bad, good, write_run

from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.compare import CompareOptions, compare, failed_gates, resamples_for
from vision_bench.errors import InvalidRequest

COUNT = 120


def answers(factor: float = 1.0, *, seed: int = 1, noise: float = 0.02) -> list[ChatRecord]:
    """The same requests each time, some heavier than others; a run's own noise on top."""
    loads, own = random.Random(0), random.Random(seed)
    return [
        good(index, loads.uniform(50, 150) * factor * own.lognormvariate(0, noise), is_valid=True)
        for index in range(COUNT)
    ]


def compared(folder: Path, a: list[ChatRecord], b: list[ChatRecord], **options: Any) -> Any:
    first, second = write_run(folder / "a", a), write_run(folder / "b", b)
    found = compare(CompareOptions(first, second, **{"resamples": 400} | options))
    json.dumps(found, allow_nan=False)
    return found


def verdicts(found: Any, metric: str = "scheduled_ttft_ms") -> dict[str, str]:
    return {row["percentile"]: row["verdict"] for row in found["rows"] if row["metric"] == metric}


def test_a_third_more_is_slower_and_a_third_less_is_faster(tmp_path: Path) -> None:
    """In p50 and p90; p99 is not told with 120 samples, nor are its values."""
    slower = compared(tmp_path / "1", answers(), answers(1.33, seed=2), metrics=["scheduled_ttft_ms"])
    faster = compared(tmp_path / "2", answers(1.33), answers(seed=2), metrics=["scheduled_ttft_ms"])
    assert verdicts(slower) == {"p50": "SLOWER", "p90": "SLOWER", "p99": "INCONCLUSIVE"}
    assert verdicts(faster) == {"p50": "FASTER", "p90": "FASTER", "p99": "INCONCLUSIVE"}
    row = slower["rows"][0]
    assert row["ratio"] == pytest.approx(1.33, rel=0.03) and row["interval"][0] > 1.2
    last = slower["rows"][2]
    assert (last["a"], last["ratio"], last["reason"]) == (None, None, "120 samples, 368 needed")


def test_the_same_is_equivalent(tmp_path: Path) -> None:
    """Two runs that differ by 2 % of noise a request are equivalent within 5 %, and not shown so within 0.1 %."""
    found = compared(tmp_path / "1", answers(), answers(seed=2), metrics=["scheduled_ttft_ms"])
    assert verdicts(found)["p50"] == "EQUIVALENT"
    found = compared(tmp_path / "2", answers(), answers(seed=2), metrics=["scheduled_ttft_ms"], margin=0.001)
    assert verdicts(found)["p50"] == "INCONCLUSIVE"


def test_the_family_is_everything_that_is_tested(tmp_path: Path) -> None:
    """Two numbers, two percentiles that the sample carries: four tests, and no p-value is smaller than alone."""
    many = compared(
        tmp_path / "1", answers(), answers(1.1, seed=2, noise=0.3), metrics=["scheduled_ttft_ms", "tpot_ms"]
    )
    alone = compared(tmp_path / "2", answers(), answers(1.1, seed=2, noise=0.3), metrics=["scheduled_ttft_ms"])
    assert (many["family"], alone["family"]) == (4, 2)
    for mine, other in zip(many["rows"], alone["rows"], strict=False):
        if mine["p_differs"] is not None:
            assert mine["p_differs"] >= other["p_differs"]


def test_many_tests_get_more_resamples() -> None:
    """The smallest p-value that n resamples give is 2 / (n + 1): with 60 tests it must be 60 times under 5 %."""
    assert [resamples_for(None, family) for family in (0, 10, 60)] == [2000, 2000, 4800]
    assert resamples_for(2400, 60) == 2400
    with pytest.raises(InvalidRequest, match="give 2400 or more"):
        resamples_for(2399, 60)


def test_failures_make_a_run_slower(tmp_path: Path) -> None:
    """A fifth failed: the p90 over all that was due is infinite, hence null, and says why; service numbers are not."""
    broken = [bad(index) if index % 5 == 0 else record for index, record in enumerate(answers(seed=2))]
    found = compared(tmp_path, answers(), broken, metrics=["response_ms", "e2e_ms"])
    p90 = found["rows"][1]
    assert (p90["verdict"], p90["b"], p90["ratio"]) == ("SLOWER", None, None)
    assert p90["reason"] == "infinite in B alone: too many failed"
    assert found["rows"][3]["count"] == [120, 96]


def test_other_requests_are_not_compared_one_by_one(tmp_path: Path) -> None:
    """Forced, runs whose requests are other ones are compared as wholes."""
    others = [good(index, 100, item="z.mp4", body_sha256="z") for index in range(COUNT)]
    found = compared(tmp_path, answers(), others, metrics=["response_ms"])
    assert {row["is_paired"] for row in found["rows"]} == {False}


def test_requests_that_hang_together_are_no_sample(tmp_path: Path) -> None:
    """A latency that creeps up and down once in the run is one observation, not 120."""
    creeping = [good(index, 50 + abs(60 - index) * 5) for index in range(COUNT)]
    found = compared(tmp_path, creeping, creeping, metrics=["scheduled_ttft_ms"])
    assert verdicts(found)["p50"] == "INCONCLUSIVE"
    assert "fewer than 10 independent blocks" in found["rows"][0]["reason"]


def test_different_loads_are_refused_unless_forced(tmp_path: Path) -> None:
    """The message names what differs; forced, the comparison does."""

    def other_seed(manifest: Any) -> None:
        manifest["load"]["seed"] = 7

    a, b = write_run(tmp_path / "a", answers()), write_run(tmp_path / "b", answers(), change=other_seed)
    with pytest.raises(InvalidRequest, match=r"seed: 0 against 7.*--force"):
        compare(CompareOptions(a, b))
    assert compare(CompareOptions(a, b, is_forced=True, resamples=400))["differences"] == ["seed: 0 against 7"]


def test_what_is_no_comparison_is_refused(tmp_path: Path) -> None:
    """No run folder, another kind, an unknown number, a margin of nothing, no step in common."""
    a = write_run(tmp_path / "a", answers())
    b = write_run(tmp_path / "b", answers(), change=lambda manifest: manifest["plan"][0].update(name="rate 7"))
    film = write_run(tmp_path / "film", answers(), change=lambda manifest: manifest.update(kind="realtime"))
    for options, says in (
        (CompareOptions(a, tmp_path), "no run folder"),
        (CompareOptions(a, film), "kind 'realtime'"),
        (CompareOptions(a, a, metrics=["speed"]), "response_ms"),
        (CompareOptions(a, a, margin=0), "0.05"),
        (CompareOptions(a, b, is_forced=True), "no step in common"),
        (CompareOptions(a, a, metrics=["response_ms"], resamples=79), "with 2 tests, 79 resamples .* give 80 or more"),
    ):
        with pytest.raises(InvalidRequest, match=says):
            compare(options)


def test_correctness_is_paired_by_body(tmp_path: Path) -> None:
    """Of three bodies sent forty times each, the first answers count: one differs, which shows nothing."""
    worse = [good(index, 100, is_valid=index % 3 != 0) for index in range(COUNT)]
    found = compared(tmp_path, answers(), worse, metrics=["response_ms"])["correctness"]
    assert (found["count"], found["both"], found["only_a"], found["only_b"]) == (3, 2, 1, 0)
    assert (found["p"], found["verdict"], found["measure"]) == (1.0, "NO DIFFERENCE SHOWN", "valid")


def test_labelled_answers_are_paired_by_clip(tmp_path: Path) -> None:
    """Whatever order they ended in, the first answer about each clip counts, right in every fact or not."""
    fact = {"name": "score", "value": "3-1", "scorer": "exact"}

    def labelled(manifest: Any) -> None:
        facts = {clip: [fact] for clip in manifest["workload"]["bodies"]}
        manifest["workload"] |= {"items": manifest["workload"]["bodies"], "labels": {"facts": facts}}

    def run(first_words: str) -> list[ChatRecord]:
        told = [json.dumps({"score": first_words if index < 3 else "3-1"}) for index in range(COUNT)]
        return [good(index, 100, text=told[index]) for index in range(COUNT)]

    a = write_run(tmp_path / "a", run("3-1"), change=labelled)
    b = write_run(tmp_path / "b", run("0-0"), change=labelled)
    found = compare(CompareOptions(a, b, metrics=["response_ms"], resamples=400))["correctness"]
    assert (found["measure"], found["count"], found["only_a"]) == ("correct", 3, 3)


def test_many_bodies_that_turn_wrong_are_less_correct(tmp_path: Path) -> None:
    """Twelve of 120 different bodies: McNemar's p is 2 / 2^12."""

    def run(wrong: int) -> list[ChatRecord]:
        return [
            good(index, 100, item=f"{index}.mp4", body_sha256=str(index), is_valid=index >= wrong)
            for index in range(COUNT)
        ]

    found = compared(tmp_path, run(0), run(12), metrics=["response_ms"])
    assert found["correctness"]["p"] == pytest.approx(2 / 2**12, abs=1e-6)
    assert failed_gates(found, ["less-correct"]) == ["B is LESS CORRECT"]
    assert failed_gates(found, ["slower"]) == []


def test_gates(tmp_path: Path) -> None:
    """Slower and inconclusive are counted; a gate that does not exist is refused before anything is read."""
    found = compared(tmp_path, answers(), answers(1.5), metrics=["response_ms"])
    assert failed_gates(found, ["slower", "inconclusive"]) == ["2 of 3 are SLOWER", "1 of 3 are INCONCLUSIVE"]
    with pytest.raises(InvalidRequest, match="slower, inconclusive, less-correct"):
        failed_gates(None, ["slow"])


def test_a_run_that_was_cut_off_counts_what_it_lost(tmp_path: Path) -> None:
    """Its step has no end; records that are there are compared, and the comparison says so."""
    a = write_run(tmp_path / "a", answers())
    b = write_run(tmp_path / "b", answers(seed=2)[:100], due=COUNT, is_cut=True)
    found = compare(CompareOptions(a, b, metrics=["response_ms"], resamples=100))
    assert not found["b"]["is_complete"] and found["b"]["steps"] == {"rate 10": "UNDETERMINED"}
