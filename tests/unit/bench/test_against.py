"""bench.against: which arm is first, and how far each may go."""

from __future__ import annotations

from pathlib import Path

import pytest

from vision_bench.bench.against import UpTo, order_of
from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.plan import Ladder, LoadPlan, make_steps
from vision_bench.bench.run import RunOptions, prepare_run
from vision_bench.errors import InvalidRequest


def test_neither_arm_is_always_the_first() -> None:
    """A step has another order than the one before it, and than itself a round before."""
    for place in range(4):
        for number in range(4):
            assert order_of(place, number) != order_of(place + 1, number)
            assert order_of(place, number) != order_of(place, number + 1)


def test_a_program_up_to_a_step() -> None:
    """Gives that one and those before it."""
    plan = LoadPlan(rates=[1, 2, 3], concurrency=(), arrivals=parse_process("constant"), duration_seconds=1)
    program = UpTo(Ladder(make_steps(plan)), 1)
    assert [program.step(index) is not None for index in range(4)] == [True, True, False, False]
    assert program.size == 3


@pytest.mark.parametrize(("name", "text"), [("local.toml", 'kind = "preprocess"'), ("made.json", "{}")])
def test_a_kind_whose_runs_are_not_compared_is_refused_before_its_load(name: str, text: str, tmp_path: Path) -> None:
    """Not after minutes of it, when there is nothing to compare them with; no folder is made."""
    (tmp_path / name).write_text(text)
    plan = LoadPlan(rates=[1.0], concurrency=[], duration_seconds=1, arrivals=parse_process("constant"))
    with pytest.raises(InvalidRequest, match="are not compared; leave --against out"):
        prepare_run(RunOptions(tmp_path / name, None, tmp_path / "out", plan), arms="pair")
    assert not (tmp_path / "out").exists()
