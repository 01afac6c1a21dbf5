"""wire.prometheus: pages as vLLM sends them, and what happened between two."""

from __future__ import annotations

from pathlib import Path

import pytest

from vision_bench.wire.prometheus import Histogram, difference, read_page

REAL = (Path(__file__).parents[2] / "golden" / "vllm_captures" / "metrics.txt").read_text("utf-8")

PAGE = """# HELP app_wait_seconds Waiting.
# TYPE app_wait_seconds histogram
app_wait_seconds_bucket{engine="0",le="0.1"} 3
app_wait_seconds_bucket{engine="0",le="1.0"} 4
app_wait_seconds_bucket{engine="0",le="+Inf"} 5
app_wait_seconds_count{engine="0"} 5
app_wait_seconds_sum{engine="0"} 4.5
app_wait_seconds_created{engine="0"} 1.7e+09
app_wait_seconds_bucket{engine="1",le="0.1"} 1
app_wait_seconds_bucket{engine="1",le="1.0"} 1
app_wait_seconds_bucket{engine="1",le="+Inf"} 1
app_wait_seconds_count{engine="1"} 1
app_wait_seconds_sum{engine="1"} 0.05
# TYPE app_hits counter
app_hits_total{path="/a b{c}\\"d\\""} 7.0 1700000000000
app_hits_created{path="x"} 1.7e+09
# TYPE app_plain_total counter
app_plain_total 2
# TYPE app_level gauge
app_level 3
# TYPE app_odd counter
app_odd_total NaN
not a line
"""


def test_label_sets_are_added_up() -> None:
    """Two engines are one server; gauges, creation times, NaN and other lines are passed over."""
    page = read_page(PAGE)
    assert page.counters == {"app_hits_total": 7.0, "app_plain_total": 2.0}
    wait = page.histograms["app_wait_seconds"]
    assert (wait.count, wait.mean) == (6, pytest.approx(4.55 / 6))
    assert (wait.at_most(0.5), wait.at_most(0.8), wait.at_most(0.99)) == (0.1, 1.0, None)


def test_a_real_page_is_read() -> None:
    """vLLM 0.32's own names."""
    page = read_page(REAL)
    assert page.counters["vllm:mm_cache_queries_total"] >= page.counters["vllm:mm_cache_hits_total"] >= 0
    assert page.histograms["vllm:request_prefill_time_seconds"].count > 0
    assert not [name for name in page.counters if name.endswith("_created")]


def test_what_happened_between_two_pages() -> None:
    """Counts less counts; what did not move is left out."""
    later = PAGE.replace('count{engine="1"} 1', 'count{engine="1"} 3').replace(
        'sum{engine="1"} 0.05', 'sum{engine="1"} 1.05'
    )
    later = later.replace('le="+Inf"} 1', 'le="+Inf"} 3').replace('"1",le="1.0"} 1', '"1",le="1.0"} 3')
    moved = difference(read_page(PAGE), read_page(later))
    assert moved.counters == {}
    assert moved.histograms["app_wait_seconds"].mean == pytest.approx(0.5)
    assert moved.histograms["app_wait_seconds"].at_most(0.5) == 1.0


def test_a_server_that_was_started_anew_tells_nothing() -> None:
    """Its counts went down."""
    earlier = PAGE.replace("7.0", "9.0").replace('"0",le="0.1"} 3', '"0",le="0.1"} 4')
    moved = difference(read_page(earlier), read_page(PAGE))
    assert (moved.counters, moved.histograms) == ({}, {})
    assert difference(read_page(""), read_page(PAGE)).counters["app_plain_total"] == 2


def test_no_value_has_no_mean() -> None:
    """None, not 0."""
    assert (Histogram().mean, Histogram().at_most(0.5)) == (None, None)
