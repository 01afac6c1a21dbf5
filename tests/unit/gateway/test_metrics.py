"""The counts: plain arithmetic."""

from __future__ import annotations

import pytest

from vision_bench.gateway.metrics import Histogram, Metrics
from vision_bench.gateway.timings import Timings


@pytest.mark.parametrize(("value", "counts"), [(0.0, [1, 0, 0]), (1.0, [1, 0, 0]), (1.1, [0, 1, 0]), (9.0, [0, 0, 1])])
def test_a_value_falls_under_the_first_bound_that_holds_it(value: float, counts: list[int]) -> None:
    """Bounds belong to their bucket, as ``le`` says; what is greater than all of them is counted too."""
    histogram = Histogram((1, 2))
    histogram.observe(value)
    assert (histogram.counts, histogram.total) == (counts, value)


def test_a_call_without_a_permit_counts_its_wait_alone() -> None:
    """What never reached vLLM says nothing about vLLM; what got no head says nothing about heads."""
    metrics = Metrics()
    metrics.call_ended(Timings(queue_ms=2000.0))
    metrics.call_ended(Timings(queue_ms=0.0, upstream_ms=4000.0))
    metrics.call_ended(Timings(queue_ms=0.0, upstream_ms=4000.0, head_ms=1000.0))
    metrics.call_ended(Timings())
    upstream = metrics.upstreams[0]
    assert (sum(metrics.queue_seconds.counts), metrics.queue_seconds.total) == (3, 2.0)
    assert (sum(upstream.seconds.counts), upstream.seconds.total) == (2, 8.0)
    assert (sum(upstream.head_seconds.counts), upstream.head_seconds.total) == (1, 1.0)


def test_requests_add_up_by_route_class_and_outcome() -> None:
    """One more of the same is one more there, and bytes are sums."""
    metrics = Metrics()
    for status, outcome in ((200, "ok"), (200, "ok"), (499, "client_left")):
        metrics.request_ended("/chat", status=status, outcome=outcome, seconds=0.5, body_bytes=10, answer_bytes=3)
    route = metrics.routes["/chat"]
    assert route.answered == {("2xx", "ok"): 2, ("4xx", "client_left"): 1}
    assert (route.body_bytes, route.answer_bytes, route.seconds.total) == (30, 9, 1.5)
