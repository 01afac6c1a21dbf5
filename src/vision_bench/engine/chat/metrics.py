"""The engine's ``GET /metrics``: vLLM's names, labels and buckets, counted here and written as Prometheus text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_FIRST_TOKEN_SECONDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_TOKEN_SECONDS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
_REQUEST_SECONDS = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
_N = (1.0, 2.0, 5.0, 10.0, 20.0)
_HTTP_SECONDS = (0.1, 0.5, 1.0)


def token_buckets(max_model_len: int) -> tuple[float, ...]:
    """1, 2, 5, 10, … up to the context length: vLLM's buckets for counts of tokens."""
    steps = [float(digit * 10**power) for power in range(8) for digit in (1, 2, 5)]
    return tuple(step for step in steps if step <= max_model_len)


@dataclass(frozen=True, slots=True)
class Metric:
    """One family: its name without ``_total``, its kind, its help; ``engine`` says whether vLLM's labels are on it.

    ``labels`` lists the label sets that stand on the page from the start, at zero.
    """

    name: str
    kind: str
    help: str
    buckets: Sequence[float] = ()
    engine: bool = True
    labels: tuple[Mapping[str, str], ...] = ({},)


def _each(label: str, *values: str) -> tuple[Mapping[str, str], ...]:
    return tuple({label: value} for value in values)


def vllm_metrics(max_model_len: int) -> tuple[Metric, ...]:
    """The families on the page, in vLLM's order."""
    tokens = token_buckets(max_model_len)
    seconds = _REQUEST_SECONDS
    return (
        Metric("vllm:num_requests_running", "gauge", "Number of requests in model execution batches."),
        Metric("vllm:num_requests_waiting", "gauge", "Number of requests waiting to be processed."),
        Metric(
            "vllm:num_requests_waiting_by_reason",
            "gauge",
            "Number of waiting requests by reason.",
            labels=_each("reason", "capacity", "deferred"),
        ),
        Metric("vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage."),
        Metric("vllm:prefix_cache_queries", "counter", "Prefix cache queries, in terms of number of queried tokens."),
        Metric("vllm:prefix_cache_hits", "counter", "Prefix cache hits, in terms of number of cached tokens."),
        Metric("vllm:mm_cache_queries", "counter", "Multi-modal cache queries, in terms of number of queried items."),
        Metric("vllm:mm_cache_hits", "counter", "Multi-modal cache hits, in terms of number of cached items."),
        Metric("vllm:num_preemptions", "counter", "Cumulative number of preemption from the engine."),
        Metric("vllm:prompt_tokens", "counter", "Number of prefill tokens processed."),
        Metric(
            "vllm:prompt_tokens_by_source",
            "counter",
            "Number of prompt tokens by source.",
            labels=_each("source", "local_compute", "local_cache_hit", "external_kv_transfer"),
        ),
        Metric("vllm:prompt_tokens_cached", "counter", "Number of cached prompt tokens (local + external)."),
        Metric("vllm:generation_tokens", "counter", "Number of generation tokens processed."),
        Metric(
            "vllm:request_success",
            "counter",
            "Count of successfully processed requests.",
            labels=_each("finished_reason", "stop", "length", "abort", "error", "repetition"),
        ),
        Metric(
            "vllm:admission_rejections",
            "counter",
            "Number of admission attempts rejected by a queue limit, by reason.",
            labels=_each("reason", "max_num_queued_reqs", "max_num_queued_tokens"),
        ),
        Metric("vllm:request_prompt_tokens", "histogram", "Number of prefill tokens processed.", tokens),
        Metric("vllm:request_generation_tokens", "histogram", "Number of generation tokens processed.", tokens),
        Metric("vllm:request_params_n", "histogram", "Histogram of the n request parameter.", _N),
        Metric("vllm:request_params_max_tokens", "histogram", "Histogram of the max_tokens request parameter.", tokens),
        Metric(
            "vllm:time_to_first_token_seconds",
            "histogram",
            "Histogram of time to first token in seconds.",
            _FIRST_TOKEN_SECONDS,
        ),
        Metric(
            "vllm:inter_token_latency_seconds",
            "histogram",
            "Histogram of inter-token latency in seconds.",
            _TOKEN_SECONDS,
        ),
        Metric(
            "vllm:request_time_per_output_token_seconds",
            "histogram",
            "Histogram of time_per_output_token_seconds per request.",
            _TOKEN_SECONDS,
        ),
        Metric(
            "vllm:e2e_request_latency_seconds", "histogram", "Histogram of e2e request latency in seconds.", seconds
        ),
        Metric(
            "vllm:request_queue_time_seconds",
            "histogram",
            "Histogram of time spent in WAITING phase for request.",
            seconds,
        ),
        Metric(
            "vllm:request_inference_time_seconds",
            "histogram",
            "Histogram of time spent in RUNNING phase for request.",
            seconds,
        ),
        Metric(
            "vllm:request_prefill_time_seconds",
            "histogram",
            "Histogram of time spent in PREFILL phase for request.",
            seconds,
        ),
        Metric(
            "vllm:request_decode_time_seconds",
            "histogram",
            "Histogram of time spent in DECODE phase for request.",
            seconds,
        ),
        Metric(
            "http_requests",
            "counter",
            "Total number of requests by method, status and handler.",
            engine=False,
            labels=(),
        ),
        Metric(
            "http_request_duration_seconds",
            "histogram",
            "Latency with only few buckets by handler.",
            _HTTP_SECONDS,
            engine=False,
            labels=(),
        ),
    )


_Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Series:
    """One label set: a number, or a histogram's counts per bucket (the last one is +Inf) and sum."""

    value: float = 0.0
    counts: list[int] = field(default_factory=list)


class EngineMetrics:
    """Numbers of one engine. Nothing global: two engines in one process count apart."""

    def __init__(self, model_name: str, max_model_len: int) -> None:
        self._model_name = model_name
        self._metrics = {metric.name: metric for metric in vllm_metrics(max_model_len)}
        self._series: dict[str, dict[_Labels, _Series]] = {name: {} for name in self._metrics}
        for name, metric in self._metrics.items():
            for labels in metric.labels:
                self._at(name, labels)

    def _at(self, name: str, labels: Mapping[str, str]) -> _Series:
        metric = self._metrics[name]
        key = tuple(sorted({**self._own_labels(metric), **labels}.items()))
        series = self._series[name].get(key)
        if series is None:
            counts = [0] * (len(metric.buckets) + 1) if metric.kind == "histogram" else []
            series = self._series[name][key] = _Series(counts=counts)
        return series

    def _own_labels(self, metric: Metric) -> dict[str, str]:
        if not metric.engine:
            return {}
        if metric.name == "vllm:admission_rejections":  # the one vLLM family without an engine label
            return {"model_name": self._model_name}
        return {"engine": "0", "model_name": self._model_name}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        self._at(name, labels).value += amount

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        self._at(name, labels).value = value

    def observe(self, name: str, value: float | None, **labels: str) -> None:
        """Put a value into a histogram; None is no value and is not counted."""
        if value is None:
            return
        series = self._at(name, labels)
        series.counts[bisect_left(self._metrics[name].buckets, value)] += 1
        series.value += value

    def render(self) -> str:
        """The page."""
        return "".join(line + "\n" for name in self._metrics for line in self._family(name))

    def _family(self, name: str) -> Iterator[str]:
        metric = self._metrics[name]
        shown = f"{name}_total" if metric.kind == "counter" else name
        yield f"# HELP {shown} {metric.help}"
        yield f"# TYPE {shown} {metric.kind}"
        for labels, series in self._series[name].items():
            if metric.kind != "histogram":
                yield f"{shown}{_label_text(labels)} {float(series.value)}"
                continue
            total = 0
            for bound, count in zip((*metric.buckets, float("inf")), series.counts, strict=True):
                total += count
                le = "+Inf" if bound == float("inf") else str(float(bound))
                yield f"{name}_bucket{_label_text((*labels, ('le', le)))} {float(total)}"
            yield f"{name}_count{_label_text(labels)} {float(total)}"
            yield f"{name}_sum{_label_text(labels)} {series.value}"


def _label_text(labels: _Labels) -> str:
    """``{engine="0",model_name="qwen"}``, sorted by name as on vLLM's page; nothing for no labels."""
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(labels))
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
