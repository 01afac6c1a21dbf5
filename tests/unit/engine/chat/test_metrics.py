"""The metrics page."""

from __future__ import annotations

import re
from pathlib import Path

from vision_bench.engine.chat.metrics import EngineMetrics, token_buckets, vllm_metrics

CAPTURED = Path(__file__).parents[3] / "golden" / "vllm_captures" / "metrics.txt"


def lines(page: str, start: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith(start)]


def test_names_labels_and_buckets_are_those_of_a_captured_page() -> None:
    """Every vllm: series of ours stands on vLLM's page too, label for label."""
    captured = CAPTURED.read_text()
    series = {line.rsplit(" ", 1)[0] for line in captured.splitlines() if line.startswith("vllm:")}
    page = EngineMetrics("tiny-omni", 4096).render()
    ours = {line.rsplit(" ", 1)[0] for line in lines(page, "vllm:")}
    assert ours - series == set()
    assert len(ours) > 250


def test_kinds_are_those_of_the_captured_page() -> None:
    """Counters are counters, histograms histograms."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", CAPTURED.read_text(), re.M))
    for metric in vllm_metrics(4096):
        shown = f"{metric.name}_total" if metric.kind == "counter" else metric.name
        assert kinds[shown] == metric.kind


def test_histogram_counts_add_up_and_a_bound_belongs_to_its_bucket() -> None:
    """le means less or equal: 0.01 s is in le=0.01."""
    metrics = EngineMetrics("qwen", 4096)
    for seconds in (0.01, 0.02, 100.0):
        metrics.observe("vllm:inter_token_latency_seconds", seconds)
    page = metrics.render()
    name = 'vllm:inter_token_latency_seconds_bucket{engine="0",le="%s",model_name="qwen"} %s'
    assert name % ("0.01", "1.0") in page
    assert name % ("0.025", "2.0") in page
    assert name % ("80.0", "2.0") in page
    assert name % ("+Inf", "3.0") in page
    assert 'vllm:inter_token_latency_seconds_count{engine="0",model_name="qwen"} 3.0' in page


def test_no_value_is_not_counted() -> None:
    """One token has no gap: None is left out, not taken for 0."""
    metrics = EngineMetrics("qwen", 4096)
    metrics.observe("vllm:request_time_per_output_token_seconds", None)
    (count,) = lines(metrics.render(), "vllm:request_time_per_output_token_seconds_count")
    assert count.endswith(" 0.0")


def test_label_values_are_escaped() -> None:
    """A quote in a model name does not end the label."""
    page = EngineMetrics('a"b,c', 4096).render()
    assert 'model_name="a\\"b,c"' in page


def test_rejections_carry_no_engine_label() -> None:
    """The one family where vLLM leaves it out."""
    metrics = EngineMetrics("qwen", 4096)
    metrics.count("vllm:admission_rejections", reason="max_num_queued_reqs")
    assert 'vllm:admission_rejections_total{model_name="qwen",reason="max_num_queued_reqs"} 1.0' in metrics.render()


def test_token_buckets_end_below_the_context_length() -> None:
    """1, 2, 5 times powers of ten."""
    assert token_buckets(100) == (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
