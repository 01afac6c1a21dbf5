"""The gateway's counts in Prometheus' form. docs/gateway.md lists every name; a test holds the list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from vision_bench.gateway.fleet import Fleet, Upstream
from vision_bench.gateway.metrics import Histogram, Metrics
from vision_bench.gateway.room import Buffer

PREFIX = "vision_bench_gateway_"

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""The one form we speak. The library would choose among several by the Accept header, and fails on a bad one."""


class Exposition:
    """The /metrics page of one application, with its own registry: nothing is shared within the process."""

    def __init__(self, collector: Collector) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(collector)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def page(self) -> bytes:
        """All metrics as they are now. About 2 ms."""
        return generate_latest(self._registry)


class GatewayCollector(Collector):
    """Reads the counts, and the gauges where they live: the hot path knows nothing of Prometheus.

    Args:
        pictures: room for pictures of live streams; None where there are no streams.
    """

    def __init__(
        self, metrics: Metrics, buffer: Buffer, fleet: Fleet, *, version: str, pictures: Buffer | None = None
    ) -> None:
        self._metrics = metrics
        self._buffer = buffer
        self._pictures = pictures
        self._fleet = fleet
        self._version = version

    def describe(self) -> list[Metric]:
        """Nothing: names are ours alone here, so registering need not collect."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every family, also those without a sample."""
        yield _gauge("build_info", "The gateway's version; always 1.", {(self._version,): 1}, ["version"])
        yield from self._requests()
        yield from self._items()
        yield from self._queue()
        yield from self._upstream_calls()

    def _requests(self) -> Iterator[Metric]:
        metrics, routes = self._metrics, self._metrics.routes
        yield _gauge("requests_in_progress", "Requests being answered, this scrape among them.", metrics.in_progress)
        answered = {(path, *key): count for path, route in routes.items() for key, count in route.answered.items()}
        yield _counter("requests", "Requests answered.", answered, ["route", "status_class", "outcome"])
        sizes = {(path,): route.body_bytes for path, route in routes.items()}
        yield _counter("request_body_bytes", "Bodies of requests, as far as they were read.", sizes, ["route"])
        sizes = {(path,): route.answer_bytes for path, route in routes.items()}
        yield _counter("response_body_bytes", "Bodies of answers.", sizes, ["route"])
        seconds = {(path,): route.seconds for path, route in routes.items()}
        yield _histogram("request_duration_seconds", "From a request's head to its answer's end.", seconds, ["route"])
        yield _histogram(
            "stream_first_byte_seconds",
            "From a request's head to the first bytes of its event stream.",
            {(): metrics.first_byte_seconds},
        )
        left = {(stage,): count for stage, count in metrics.left.items()}
        yield _counter("client_disconnects", "Requests whose caller left before the answer's end.", left, ["stage"])

    def _items(self) -> Iterator[Metric]:
        items = {(outcome,): count for outcome, count in self._metrics.items.items()}
        yield _counter("batch_items", "Items of batches that were started.", items, ["outcome"])

    def _queue(self) -> Iterator[Metric]:
        buffer = self._buffer
        yield _gauge("buffered_bytes", "Room that bodies hold.", buffer.held_bytes)
        yield _gauge("buffer_limit_bytes", "GATEWAY_BUFFER_BYTES.", buffer.limit_bytes)
        yield _gauge("requests_waiting_for_room", "Requests that are not read for want of room.", buffer.waiting)
        pictures = self._pictures
        held_bytes, waiting = (pictures.held_bytes, pictures.waiting) if pictures else (0, 0)
        yield _gauge("picture_bytes", "Room that pictures of live streams hold.", held_bytes)
        yield _gauge("questions_waiting_for_room", "Questions whose pictures have no room yet.", waiting)
        yield _gauge("queue_length", "Calls that wait for a permit.", self._fleet.admission.waiting)
        waits = {(): self._metrics.queue_seconds}
        yield _histogram("queue_wait_seconds", "Each call's wait for room and a permit.", waits)

    def _upstream_calls(self) -> Iterator[Metric]:
        servers, label = self._fleet.upstreams, ["upstream"]

        def of_each(value: Callable[[Upstream], int]) -> dict[tuple[str], int]:
            return {(server.url,): value(server) for server in servers}

        permits = of_each(lambda server: server.lane.permits)
        yield _gauge("permits", "Calls that may run at once: VLLM_CONCURRENCY.", permits, label)
        in_use = of_each(lambda server: server.in_use)
        yield _gauge("permits_in_use", "Calls that are running.", in_use, label)
        aside = of_each(lambda server: int(server.is_set_aside))
        yield _gauge("upstream_set_aside", "1 while a server gets no calls because it failed.", aside, label)
        failures = of_each(lambda server: server.failures)
        yield _counter("upstream_failures", "Calls not reached, broken off or sent elsewhere.", failures, label)
        retries = of_each(lambda server: server.retries)
        yield _counter("upstream_retries", "Calls sent again because a kept connection had gone stale.", retries, label)
        yield _counter("moved_calls", "Calls that went to a second server.", {(): self._fleet.moves})
        calls = {(server.url,): upstream for server, upstream in zip(servers, self._metrics.upstreams, strict=True)}
        heads = {name: upstream.head_seconds for name, upstream in calls.items()}
        yield _histogram("upstream_head_seconds", "From the permit to the head of vLLM's answer.", heads, label)
        wholes = {name: upstream.seconds for name, upstream in calls.items()}
        yield _histogram("upstream_duration_seconds", "From the permit to the call's end.", wholes, label)


_Key = TypeVar("_Key", bound=tuple[str, ...])


def _gauge(name: str, text: str, values: Mapping[_Key, int] | int, labels: Sequence[str] = ()) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=labels)
    if isinstance(values, int):
        family.add_metric((), values)
        return family
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _counter(name: str, text: str, values: Mapping[_Key, int], labels: Sequence[str] = ()) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=labels)  # which adds _total
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _histogram(
    name: str, text: str, values: Mapping[_Key, Histogram], labels: Sequence[str] = ()
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(PREFIX + name, text, labels=labels)
    for key, histogram in values.items():
        cumulative = list(accumulate(histogram.counts))
        bounds = [*(str(float(bound)) for bound in histogram.bounds), "+Inf"]
        family.add_metric(key, list(zip(bounds, cumulative, strict=True)), histogram.total)
    return family
