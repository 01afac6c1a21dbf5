"""Verdicts on made-up loads whose truth is known."""

from __future__ import annotations

import heapq
import math
from typing import Any

import pytest

from vision_bench.bench.arrivals import make_schedule, parse_process
from vision_bench.bench.verdict import Evidence, Flow, Span, Verdict, flow_of, judge

SECOND = 10**9


def served(
    rate: float, seconds: float, *, service: float, slots: int = 10**6, arrivals: str = "constant"
) -> list[Span]:
    """Requests to a server with ``slots`` places, each taken for ``service`` seconds, first come first served."""
    schedule = make_schedule(parse_process(arrivals), rate=rate, duration_seconds=seconds, seed="7")
    free = [0] * min(slots, len(schedule.offsets_ns))
    spans = []
    for start_ns in schedule.offsets_ns:
        end_ns = max(start_ns, heapq.heappop(free)) + int(service * SECOND)
        heapq.heappush(free, end_ns)
        spans.append(Span(start_ns, end_ns, True))
    return spans


def verdict_on(spans: list[Span], rate: float | None, seconds: float, **changes: Any) -> Verdict:
    flow = flow_of(spans, int(seconds * SECOND))
    values: dict[str, Any] = {
        "due": len(spans),
        "ok": sum(span.is_ok for span in spans),
        "is_complete": True,
        "window_seconds": seconds,
        "offered_rate": rate,
        "lag_p99_ms": 0.3,
        "loop_lag_p99_ms": 1.2,
        "cpu_share": 0.2,
        "response_p50_ms": 500.0,
    }
    return judge(Evidence(**values | changes), flow)


@pytest.mark.parametrize("arrivals", ["constant", "poisson", "gamma:0.5"])
@pytest.mark.parametrize(("rate", "seconds", "service"), [(20, 20, 0.4), (5, 6, 0.3), (50, 10, 1.0), (2, 30, 2.0)])
def test_a_load_below_capacity_is_stable(arrivals: str, rate: float, seconds: float, service: float) -> None:
    """Enough places for everyone: whatever the arrivals, and whatever share of the step the first answer takes."""
    verdict = verdict_on(served(rate, seconds, service=service, arrivals=arrivals), rate, seconds)
    assert verdict.name == "STABLE", verdict.reason


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
@pytest.mark.parametrize("seconds", [5, 20, 60])
def test_a_load_above_capacity_is_saturated(arrivals: str, seconds: float) -> None:
    """8 places of 0.365 s are 21.9 a second; 40 a second pile up, from the first seconds on."""
    spans = served(40, seconds, service=0.365, slots=8, arrivals=arrivals)
    verdict = verdict_on(spans, 40, seconds, response_p50_ms=seconds * 200)
    assert verdict.name == "SATURATED" and "of 40.0/s offered" in verdict.reason
    achieved = flow_of(spans, seconds * SECOND).achieved_rate
    assert achieved == pytest.approx(21.9, rel=0.15 if seconds == 5 else 0.03)


def test_achieved_is_the_offered_rate_where_all_are_served() -> None:
    """The time that the first answer took is not held against the rate."""
    flow = flow_of(served(10, 10, service=3), 10 * SECOND)
    assert flow.achieved_rate == pytest.approx(10, rel=0.02)
    assert flow.level == pytest.approx(30, rel=0.01)


def test_the_number_in_flight_is_integrated_exactly() -> None:
    """One request of 4 s in a window of 10 s, and one that never ends: means of 1 and 2 and 1."""
    spans = [Span(0, None, False), Span(6 * SECOND, 10 * SECOND, True)]
    flow = flow_of(spans, 10 * SECOND)
    assert flow.level == pytest.approx((1 + 4 * 2) / 5, rel=1e-6), "the second half: 5 to 6 s one, then two"


def test_few_arrivals_say_nothing() -> None:
    """Also where they clearly pile up."""
    verdict = verdict_on(served(10, 0.8, service=0.5, slots=1), 10, 0.8)
    assert verdict == ("UNDETERMINED", "8 arrivals, 20 needed; raise --duration or --requests")


def test_a_step_that_was_cut_off_is_not_judged() -> None:
    """Its end is not known."""
    assert verdict_on(served(20, 5, service=0.1), 20, 5, is_complete=False).name == "UNDETERMINED"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"lag_p99_ms": 2.6, "response_p50_ms": 100.0}, "2.6 ms late"),
        ({"lag_p99_ms": 10.1, "response_p50_ms": 60_000.0}, "10.1 ms late"),
        ({"loop_lag_p99_ms": 9.0}, "event loop was 9.0 ms late"),
        ({"cpu_share": 0.93}, "93% of a core"),
    ],
)
def test_a_client_that_cannot_keep_up_is_the_first_suspect(change: dict[str, float], says: str) -> None:
    """Late sending, a late loop, a full core; at 20 a second 2.5 ms of lag are allowed."""
    verdict = verdict_on(served(20, 10, service=0.2), 20, 10, **change)
    assert verdict.name == "CLIENT-LIMITED" and says in verdict.reason
    assert verdict_on(served(20, 10, service=0.2), 20, 10, lag_p99_ms=2.4, response_p50_ms=100.0).name == "STABLE"
    assert verdict_on(served(20, 10, service=0.2), 20, 10, lag_p99_ms=9.9, response_p50_ms=500.0).name == "STABLE"


def test_a_saturated_server_outweighs_a_little_lag_and_a_great_lag_outweighs_it() -> None:
    """Lag under a tenth of the response time cannot be what piles requests up."""
    spans = served(40, 20, service=0.365, slots=8)
    assert verdict_on(spans, 40, 20, lag_p99_ms=30, response_p50_ms=4000).name == "SATURATED"
    assert verdict_on(spans, 40, 20, lag_p99_ms=900, response_p50_ms=4000).name == "CLIENT-LIMITED"


def test_failures_and_doubts_leave_it_open() -> None:
    """More than one in a hundred failed, or something else is not as it was meant."""
    spans = served(20, 10, service=0.2)
    verdict = verdict_on(spans, 20, 10, ok=190, failures="http_error 10")
    assert verdict == ("UNDETERMINED", "10 of 200 failed (http_error 10)")
    doubt = verdict_on(spans, 20, 10, doubts=["cached tokens in a cold run"])
    assert doubt == ("UNDETERMINED", "cached tokens in a cold run")
    assert verdict_on(spans, 20, 10, ok=199).name == "STABLE"


def test_a_server_that_answers_nothing_within_the_step() -> None:
    """Ten seconds for each answer in a step of two: nobody can say."""
    verdict = verdict_on(served(20, 2, service=10), 20, 2, response_p50_ms=10_000)
    assert verdict.name in ("SATURATED", "UNDETERMINED")
    assert flow_of(served(20, 2, service=10), 2 * SECOND).achieved_rate is None


def test_a_closed_loop_has_no_offered_rate() -> None:
    """It is stable unless the client or the failures say otherwise."""
    spans = [Span(number * SECOND // 10, (number + 1) * SECOND // 10, True) for number in range(100)]
    assert verdict_on(spans, None, 10).name == "STABLE"
    assert verdict_on(spans, None, 10, cpu_share=0.95).name == "CLIENT-LIMITED"
    assert verdict_on(spans, None, 10, lag_p99_ms=50).name == "STABLE"


def test_a_flat_line_has_no_growth() -> None:
    """One request at a time, back to back."""
    flow = flow_of([Span(number * SECOND, (number + 1) * SECOND, True) for number in range(20)], 20 * SECOND)
    assert isinstance(flow, Flow)
    assert (flow.level, abs(flow.growth) < 1e-6, math.isfinite(flow.noise)) == (pytest.approx(1.0), True, True)
