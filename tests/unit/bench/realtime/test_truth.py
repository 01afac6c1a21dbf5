"""bench.realtime.truth: measured minus true, thing by thing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.bench.realtime.made import arrivals, times

from vision_bench.bench.realtime.records import NS_PER_MS, SentEvent, SessionObservation
from vision_bench.bench.realtime.truth import timing_errors
from vision_bench.wire.realtime.truth import ChunkTruth, EventTruth

MS = NS_PER_MS
AHEAD = 10**15
"""The server's clock began so much earlier."""


def declared(index: int, due_ms: float, sent_ms: float, name: str = "r") -> ChunkTruth:
    """A frame of a session whose start was read at 1 ms and that had its slot at once."""
    read_ns = AHEAD + MS
    return ChunkTruth(name, index, read_ns, read_ns, AHEAD + round(due_ms * MS), AHEAD + round(sent_ms * MS))


SESSION = SessionObservation(
    times(0),
    request_id="r",
    arrivals=tuple(arrivals(1001, 1703, 2403, started={2: ["e"]})),
    events=(SentEvent("e", 1100 * MS, 1101 * MS),),
)
TRUTHS: list[ChunkTruth | EventTruth] = [
    declared(0, 1000, 1000.5),
    declared(1, 1700, 1700.5),
    declared(2, 2400, 2402.0),
    EventTruth("r", "e", AHEAD + 1101 * MS, AHEAD + 2402 * MS),
]


def test_spans_are_compared_whatever_the_clocks_say() -> None:
    """First chunk 1001 against 999.5, gaps 702 and 700 against 700 and 701.5, an event 1303 against 1301."""
    errors = timing_errors([SESSION], TRUTHS, has_one_clock=False)
    assert errors.ttfc_ms == (1.5,)
    assert errors.interval_ms == (2.0, -1.5)
    assert errors.first_affected_ms == (2.0,)
    assert (errors.on_the_way_ms, errors.frames_without_truth) == (None, 0)
    assert errors.server_lateness_ms == (0.5, 0.5, 2.0)


def test_with_one_clock_the_way_itself_is_told() -> None:
    """Sent to there, frame by frame."""
    near = [replace(one, sent_ns=one.sent_ns - AHEAD) for one in TRUTHS if isinstance(one, ChunkTruth)]
    errors = timing_errors([SESSION], near, has_one_clock=True)
    assert errors.on_the_way_ms == (0.5, 2.5, 1.0)


def test_what_the_server_does_not_tell_is_counted_and_not_guessed() -> None:
    """Without the first frame no TTFC, without the middle one no gap across it, without the event no error of it."""
    errors = timing_errors([SESSION], [TRUTHS[1]], has_one_clock=False)
    assert (errors.ttfc_ms, errors.interval_ms, errors.first_affected_ms) == ((), (), ())
    assert errors.frames_without_truth == 2
    errors = timing_errors([SESSION], [TRUTHS[0], TRUTHS[2]], has_one_clock=False)
    assert (errors.ttfc_ms, errors.interval_ms, errors.frames_without_truth) == ((1.5,), (), 1)


def test_sessions_are_told_apart_by_their_id() -> None:
    """Another request's truth is nobody's, and a session without an id has none."""
    other = [replace(one, request_id="other") for one in TRUTHS]
    for session in (SESSION, replace(SESSION, request_id=None)):
        errors = timing_errors([session], other, has_one_clock=False)
        assert (errors.ttfc_ms, errors.first_affected_ms, errors.frames_without_truth) == ((), (), 3)


@pytest.mark.parametrize("sessions", [[], [SessionObservation(times(0), request_id="r")]])
def test_nothing_measured_is_nothing_wrong(sessions: list[SessionObservation]) -> None:
    """Empty tuples."""
    errors = timing_errors(sessions, TRUTHS, has_one_clock=True)
    assert (errors.ttfc_ms, errors.interval_ms, errors.on_the_way_ms) == ((), (), ())
