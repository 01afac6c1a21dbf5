"""bench.realtime.metrics: what the vectors leave open."""

from __future__ import annotations

from itertools import pairwise

import pytest

from vision_bench.bench.realtime.metrics import (
    ChunkRecord,
    aggregate_metrics,
    compute_metrics,
    percentile,
    simulate_playback,
    steady_chunk_deadline_ms,
)
from vision_bench.stats import percentile as the_percentile


def records(*arrivals_s: float) -> list[ChunkRecord]:
    """Chunks that arrive then: 9 pictures in the first, 12 in the others."""
    gaps = [arrivals_s[0], *(after - before for before, after in pairwise(arrivals_s))]
    pairs = zip(arrivals_s, gaps, strict=True)
    return [ChunkRecord(index, at, gap, 1000, 9 if index == 0 else 12) for index, (at, gap) in enumerate(pairs)]


def test_the_percentile_is_the_projects() -> None:
    """There is one."""
    assert percentile is the_percentile


def test_a_record_prints_its_gap_in_milliseconds() -> None:
    """And everything else as it is."""
    assert ChunkRecord(3, 2.5, 0.5, 10, 12).to_dict() == {
        "index": 3,
        "arrival_s": 2.5,
        "inter_arrival_ms": 500.0,
        "byte_length": 10,
        "num_frames": 12,
    }


def test_a_chunk_that_comes_when_it_is_due_is_in_time() -> None:
    """Nine pictures at 16 fps are over after 0.5625 s; a chunk at that very moment is no underrun, one after it is."""
    assert simulate_playback(records(1.0, 1.5625), fps=16).underrun_count == 0
    late = simulate_playback(records(1.0, 1.5626), fps=16)
    assert (late.underrun_count, late.first_underrun_chunk) == (1, 1)
    assert late.total_stall_s == pytest.approx(0.0001, rel=1e-6)


def test_a_deadline_met_to_the_millisecond_is_met() -> None:
    """slo_attainment counts <= as in time."""
    metrics = compute_metrics(records(1.0, 1.75, 2.5, 3.5, 4.0), fps=16, warmup_chunks=0)
    assert (metrics["chunk_deadline_ms"], metrics["slo_violations"]) == (750.0, 1)


def test_the_last_chunk_is_never_steady_but_always_played() -> None:
    """A terminal chunk of 5 s: not in the steady intervals, in all the others, in the wall time and in the stalls."""
    metrics = compute_metrics(records(0.1, 0.2, 0.3, 5.3), fps=16, warmup_chunks=0)
    assert metrics["interval_steady"]["max_ms"] < 101
    assert metrics["interval_all"]["max_ms"] == pytest.approx(5000)
    assert metrics["wall_seconds"] == 5.3
    assert metrics["playback"]["first_underrun_chunk"] == 3


def test_the_spread_of_two_intervals_is_their_sample_deviation() -> None:
    """500 and 700 ms: 141.4, with n - 1; of one interval it is 0."""
    assert compute_metrics(records(1.0, 1.5, 2.2), fps=16)["interval_all"]["std_ms"] == pytest.approx(20_000**0.5)
    assert compute_metrics(records(1.0, 1.5), fps=16)["interval_all"]["std_ms"] == 0.0


def test_optional_keys_are_absent_and_not_empty() -> None:
    """A reader asks whether a key is there."""
    metrics = compute_metrics(records(1.0), fps=16)
    assert not {"ttfc_ms", "slo_attainment", "slo_violations", "steady_video_rtf", "steady_video_rtfx"} & set(metrics)


def test_an_rtf_of_half_is_an_rtfx_of_two() -> None:
    """Lower RTF is better, higher RTFX is."""
    metrics = compute_metrics(records(0.5, 33 / 32), fps=16, session_wall_s=21 / 32)
    assert (metrics["video_rtf"], metrics["video_rtfx"]) == (0.5, 2.0)


@pytest.mark.parametrize("fps", [0, -16, float("nan")])
def test_no_function_takes_a_rate_that_is_not_above_zero(fps: float) -> None:
    """With and without records, with and without a deadline."""
    for call in (
        lambda: steady_chunk_deadline_ms(fps),
        lambda: simulate_playback([], fps=fps),
        lambda: simulate_playback(records(1.0), fps=fps),
        lambda: compute_metrics(records(1.0), fps=fps),
        lambda: compute_metrics(records(1.0), fps=fps, slo_ms=5.0),
    ):
        with pytest.raises(ValueError, match="fps is"):
            call()


def test_a_buffer_deeper_than_the_session_says_both_numbers() -> None:
    """It never starts to play, whatever metric was asked for."""
    with pytest.raises(ValueError, match="buffer_chunks is 3, and only 2"):
        compute_metrics(records(1.0, 2.0), fps=16, playback_buffer_chunks=3)


def test_one_session_aggregates_to_itself() -> None:
    """With its count; the session that was given is not changed."""
    session = compute_metrics(records(1.0, 2.0, 3.0), fps=16)
    assert aggregate_metrics([session], fps=16) == {**session, "sessions": 1}
    assert "sessions" not in session


def test_sessions_may_come_from_an_iterator() -> None:
    """They are read once."""
    sessions = (compute_metrics(records(1.0, 2.0, at), fps=16, ttfc_s=1.0) for at in (3.0, 4.0))
    combined = aggregate_metrics(sessions, fps=16)
    assert (combined["sessions"], combined["video_rtf_worst"]) == (2, pytest.approx(4.0 / (33 / 16)))
