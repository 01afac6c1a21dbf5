"""bench.against: which arm is first, and how far each may go."""

from __future__ import annotations

from vision_bench.bench.against import UpTo, order_of
from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.plan import Ladder, LoadPlan, make_steps


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
