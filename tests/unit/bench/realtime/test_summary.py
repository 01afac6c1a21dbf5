"""bench.realtime.summary: the numbers of a step, worked out by hand, and nothing that is not JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.bench.realtime.made import arrivals, times

from vision_bench.bench.realtime.records import NS_PER_MS, FrameTime, SentEvent, SessionObservation
from vision_bench.bench.realtime.summary import Basis, summarise_sessions

BASIS = Basis(fps=16, width=832, height=480)


def session(*at_ms: float, start_ms: float = 0, **changes: Any) -> SessionObservation:
    """A session of chunks at those times, with a trailer and done 1 ms after the last."""
    end_ms = at_ms[-1] + 1
    moments = times(start_ms, video_start=start_ms + 2, done=end_ms, ended=end_ms)
    return SessionObservation(**{"times": moments, "arrivals": tuple(arrivals(*at_ms, trailer_ms=end_ms)), **changes})


def steady(interval_ms: float, *, chunks: int = 40, start_ms: float = 0, ttfc_ms: float = 1000) -> SessionObservation:
    """A session whose chunks keep one interval."""
    return session(*(start_ms + ttfc_ms + interval_ms * index for index in range(chunks)), start_ms=start_ms)


def nothing_came() -> SessionObservation:
    """Refused late: video.start and then an error."""
    return SessionObservation(times(0, video_start=2, ended=50), outcome="late_error")


def summary(*sessions: SessionObservation, basis: Basis = BASIS) -> dict[str, Any]:
    """Through JSON as strict parsers read it: no NaN, no Infinity."""
    found: dict[str, Any] = json.loads(json.dumps(summarise_sessions(sessions, basis=basis), allow_nan=False))
    return found


def test_a_steady_session_below_the_deadline() -> None:
    """40 chunks every 700 ms: 33 steady intervals, all in time, an RTF of 28301 ms over 477 pictures."""
    found = summary(steady(700))
    assert found["sessions"] == {"measured": 1, "warmup": 0, "outcomes": {"ok": 1}}
    assert found["chunks"]["interval_steady_ms"]["count"] == 33
    assert found["chunks"]["interval_steady_ms"]["p50"] == pytest.approx(700)
    assert (found["chunks"]["deadlines"]["met"], found["chunks"]["deadlines"]["missed"]) == (33, 0)
    assert found["chunks"]["video_rtf"]["mean"] == pytest.approx(28.301 / (477 / 16), rel=1e-5)
    assert found["startup"]["ttfc_ms"]["mean"] == 1000.0
    play = found["pictures"]["continuous_play"]
    assert play == {"sessions": 1, "sessions_not_played": 0, "mean": 37 / 40}, (
        "the first chunk is short: 1 to 3 are late"
    )
    assert found["integrity"]["whole"] == 1


def test_the_basis_is_printed_with_the_numbers() -> None:
    """The deadline follows from the rate, or is what was asked for."""
    assert summary(steady(700))["basis"]["chunk_deadline_ms"] == 750.0
    found = summary(steady(700), basis=Basis(fps=16, width=832, height=480, slo_ms=650))
    assert (found["basis"]["chunk_deadline_ms"], found["chunks"]["deadlines"]["attainment"]) == (650, 0.0)


def test_a_session_in_which_nothing_came_is_late_for_ever() -> None:
    """It withholds the mean with its reason, is counted everywhere, and is in no average of what was played."""
    found = summary(steady(700), nothing_came())
    ttfc = found["startup"]["ttfc_ms"]
    assert (ttfc["count"], ttfc["mean"]) == (2, None)
    assert "1 of 2 failed" in ttfc["withheld"]["mean"]
    assert found["sessions"]["outcomes"] == {"ok": 1, "late_error": 1}
    assert found["pictures"]["sessions_played"] == 1
    assert found["pictures"]["continuous_play"]["sessions_not_played"] == 1
    assert found["chunks"]["video_rtf"]["count"] == 1


def test_no_session_at_all_is_no_number() -> None:
    """Counts of 0, values of None."""
    found = summary()
    assert found["startup"]["ttfc_ms"]["mean"] is None
    assert found["chunks"]["deadlines"] == {"met": 0, "missed": 0, "attainment": None, "interval": None}
    assert (found["pictures"]["stalled_ms"], found["pictures"]["freezes"]) == (None, None)
    assert found["pictures"]["continuous_play"]["mean"] is None
    assert (found["cold"], found["integrity"]["frames_missing"]) == (None, None)


def test_warm_up_sessions_are_counted_and_left_out() -> None:
    """But the queue saw them, and a fresh server's first one is the cold one."""
    warmup = steady(700, chunks=10, ttfc_ms=9000)
    warmup = replace(warmup, is_warmup=True)
    measured = steady(700, chunks=10, start_ms=100, ttfc_ms=20_000)
    fresh = Basis(fps=16, width=832, height=480, server_was_fresh=True)
    found = summary(warmup, measured, basis=fresh)
    assert found["sessions"] == {"measured": 1, "warmup": 1, "outcomes": {"ok": 1}}
    assert found["startup"]["ttfc_ms"]["count"] == 1
    assert found["queue_wait_ms"]["mean"] == pytest.approx(9000 + 9 * 700 + 1 - 100)
    assert (found["cold"]["cold_ttfc_ms"], found["cold"]["cold_penalty_ms"]) == (9000.0, -11_000.0)
    assert summary(warmup, measured)["cold"] is None


def test_a_stall_shows_in_pictures() -> None:
    """Chunk 5 of a 500 ms cadence comes 3 s late: its first picture, the 57th, is due at 4500 ms and there at 6500.

    The waiting player stalls and freezes once. The other is late from there on until it has caught up, 80 pictures on.
    """
    on_time = [1000 + 500 * index for index in range(12)]
    found = summary(session(*on_time[:5], *(at + 3000 for at in on_time[5:])))["pictures"]
    assert (found["stalls"], found["freezes"], found["freeze_sessions"]) == (1, 1, 1)
    assert (found["stalled_ms"], found["worst_lateness_ms"]["max"]) == (2000.0, 2000.0)
    assert found["frozen_ms"] == pytest.approx(2062.5)
    assert (found["shown"], found["late"]) == (141, 80)


def test_interactions_are_columns_and_counts() -> None:
    """One seen after three chunks, one that never started."""
    events = (SentEvent("a", 1001 * NS_PER_MS, 1003 * NS_PER_MS), SentEvent("b", 1002 * NS_PER_MS, 1003 * NS_PER_MS))
    stream = tuple(arrivals(1000, 1700, 2400, 3100, trailer_ms=3101, started={3: ["a"]}))
    found = summary(session(1000, 1700, 2400, 3100, events=events, arrivals=stream))["interactions"]
    assert (found["sent"], found["started"], found["acked_never_started_rate"]) == (2, 1, 0.5)
    assert (found["first_affected_ms"]["mean"], found["first_affected_chunks"]["mean"]) == (2099.0, 3)
    assert found["completed_ms"]["count"] == 0


def test_drift_is_counted_by_what_its_interval_shows() -> None:
    """One session grows by 10 ms a chunk, one keeps its interval, one is too short to say."""
    growing, at = [], 1000.0
    for index in range(40):
        growing.append(at)
        at += 700 + 10 * index
    found = summary(session(*growing), steady(700), steady(700, chunks=8))["drift"]
    assert (found["sessions"], found["sessions_too_short"], found["slower"], found["faster"]) == (2, 1, 1, 0)


def test_a_stopped_session_tells_how_long_done_took() -> None:
    """From stop to done."""
    stopped = session(1000, 1700, times=times(0, stop_sent=2000, done=2040, ended=2041))
    assert summary(stopped)["stop_to_done_ms"]["mean"] == 40.0


def test_what_a_decoder_saw_is_summed_over_the_streams_that_were_decoded() -> None:
    """One stream decoded with a picture missing and one repeated, one not decoded: sums of the one, and how many."""
    frames = [FrameTime(index / 16, 1000 * NS_PER_MS, 832, 480, f"{index}") for index in range(20)]
    frames[7] = FrameTime(7 / 16, 1000 * NS_PER_MS, 832, 480, "6")
    found = summary(session(1000, 1700, frames=tuple(frames)), session(1000, 1700))["integrity"]
    assert (found["streams"], found["decoded"], found["whole"]) == (2, 1, 1)
    assert (found["frames_missing"], found["repeated_frames"], found["pts_not_ascending"]) == (1, 1, 0)
