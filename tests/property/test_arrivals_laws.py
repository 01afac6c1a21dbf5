"""Laws of every schedule."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from vision_bench.bench.arrivals import Process, make_schedule, trace_schedule

processes = st.one_of(
    st.just(Process("constant")),
    st.just(Process("poisson")),
    st.floats(0.06, 20).map(lambda shape: Process("gamma", shape)),
    st.floats(0.1, 500).map(lambda to: Process("ramp", to)),
)
rates = st.floats(1, 300)
durations = st.floats(1, 5)


@given(processes, rates, durations, st.text(max_size=5))
def test_every_arrival_is_within_its_step_and_in_order(
    process: Process, rate: float, seconds: float, seed: str
) -> None:
    """As many arrivals as the mean rate says, none before the start, none at or after the end."""
    made = make_schedule(process, rate=rate, duration_seconds=seconds, seed=seed)
    last = process.argument if process.kind == "ramp" and process.argument is not None else rate
    assert len(made.offsets_ns) == round((rate + last) / 2 * seconds)
    assert made.offsets_ns[0] >= 0 and made.offsets_ns[-1] < made.window_ns
    assert all(earlier <= later for earlier, later in pairwise(made.offsets_ns))


@given(processes, rates, durations, st.integers(1, 50))
def test_a_limit_keeps_the_rate(process: Process, rate: float, seconds: float, limit: int) -> None:
    """A step cut by number is shorter, not slower."""
    whole = make_schedule(process, rate=rate, duration_seconds=seconds, seed="0")
    cut = make_schedule(process, rate=rate, duration_seconds=seconds, seed="0", max_requests=limit)
    assert len(cut.offsets_ns) == min(limit, len(whole.offsets_ns))
    if process.kind != "ramp":
        assert abs(cut.rate / whole.rate - 1) < 0.6 / len(whole.offsets_ns) + 1e-3


@given(st.lists(st.floats(0, 1000), min_size=2, max_size=50).map(sorted), st.floats(0.1, 100))
def test_a_scaled_trace_has_the_rate_it_was_scaled_to(times: list[float], rate: float) -> None:
    """All arrivals stay, in order, within the step."""
    made = trace_schedule(times, rate=rate, duration_seconds=None)
    assert len(made.offsets_ns) == len(times)
    assert abs(made.rate / rate - 1) < 1e-3
    assert made.offsets_ns[-1] <= made.window_ns
