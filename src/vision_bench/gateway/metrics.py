"""What the gateway counts about itself: plain numbers, added to by one event loop and read at a scrape.

No library here: a counter is an int, and a histogram's observation costs 0.3 us. ``exposition`` puts them into
Prometheus' form.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from vision_bench.gateway.timings import Timings

LATENCY_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600)
"""Upper bounds of every histogram. A call with a clip takes seconds, a refusal a millisecond, a batch minutes."""

OTHER_ROUTE = "other"
"""The route of what no route answers: a path comes from outside, so it is never a label."""

STAGES = ("upload", "queue", "upstream", "answer")
"""Where a request can be when its caller leaves."""


class Histogram:
    """Observations by upper bound, and their sum.

    Attributes:
        counts: one a bound, and one more for what is greater than all of them; not cumulative.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = LATENCY_SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count ``value`` under the first bound that is not less."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class RouteCounts:
    """What one route has done.

    Attributes:
        answered: requests by (class of the status, outcome).
        body_bytes: of request bodies that came in, refused ones as far as they were read.
        answer_bytes: of answers' bodies handed to the server.
        seconds: from a request's head to the end of its answer.
    """

    __slots__ = ("answer_bytes", "answered", "body_bytes", "seconds")

    def __init__(self) -> None:
        self.answered: dict[tuple[str, str], int] = {}
        self.body_bytes = 0
        self.answer_bytes = 0
        self.seconds = Histogram()


class Calls:
    """The calls to one vLLM.

    Attributes:
        head_seconds: from the permit to the head of the answer.
        seconds: from the permit to the call's end, however it ended.
    """

    __slots__ = ("head_seconds", "seconds")

    def __init__(self) -> None:
        self.head_seconds = Histogram()
        self.seconds = Histogram()


class Metrics:
    """All counts of one application. Made with it, so that two in one process do not mix.

    Attributes:
        in_progress: requests that are being answered.
        routes: by the route's path, or ``OTHER_ROUTE``.
        upstreams: one a vLLM, in the order of VLLM_BASE_URL.
        queue_seconds: of each call, its wait for room and permit, whether it got them or not.
        first_byte_seconds: of each event stream, from the request's head to the first bytes of the stream.
        items: batch items by outcome.
        left: requests whose caller left, by stage.
    """

    def __init__(self, *, upstreams: int = 1) -> None:
        self.in_progress = 0
        self.routes: dict[str, RouteCounts] = {}
        self.upstreams = [Calls() for _ in range(upstreams)]
        self.queue_seconds = Histogram()
        self.first_byte_seconds = Histogram()
        self.items: dict[str, int] = {"ok": 0}
        self.left: dict[str, int] = dict.fromkeys(STAGES, 0)

    def call_ended(self, timings: Timings) -> None:
        """One call to vLLM is over, or never got its permit."""
        if timings.queue_ms is not None:
            self.queue_seconds.observe(timings.queue_ms / 1e3)
        if timings.upstream_ms is None:
            return
        upstream = self.upstreams[timings.upstream]
        upstream.seconds.observe(timings.upstream_ms / 1e3)
        if timings.head_ms is not None:
            upstream.head_seconds.observe(timings.head_ms / 1e3)

    def items_ended(self, outcome: str, count: int = 1) -> None:
        """``count`` batch items have ended so."""
        self.items[outcome] = self.items.get(outcome, 0) + count

    def request_ended(
        self, route_path: str, *, status: int, outcome: str, seconds: float, body_bytes: int, answer_bytes: int
    ) -> None:
        """One request is over."""
        route = self.routes.get(route_path)
        if route is None:
            route = self.routes[route_path] = RouteCounts()
        key = (_STATUS_CLASSES[status // 100], outcome)
        route.answered[key] = route.answered.get(key, 0) + 1
        route.body_bytes += body_bytes
        route.answer_bytes += answer_bytes
        route.seconds.observe(seconds)


_STATUS_CLASSES = tuple(f"{hundreds}xx" for hundreds in range(10))
