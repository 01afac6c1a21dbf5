"""bench.realtime.sessions: the waits around a video."""

from __future__ import annotations

import pytest
from tests.unit.bench.realtime.made import arrivals, times

from vision_bench.bench.realtime.records import NS_PER_MS
from vision_bench.bench.realtime.sessions import (
    cold_and_warm,
    playback_start_ns,
    queue_waits_ms,
    recovery,
    startup,
    stop_to_done_ms,
)


def test_every_wait_starts_when_session_start_was_written() -> None:
    """Connecting alone lies before it."""
    moments = times(100, connect=70, connected=95, video_start=104, first_byte=1090)
    waits = startup(moments, arrivals(1100, 1850), buffer_chunks=2)
    assert (waits.connect_ms, waits.video_start_ms, waits.first_byte_ms) == (25.0, 4.0, 990.0)
    assert (waits.ttfc_ms, waits.first_decodable_frame_ms, waits.playback_start_ms) == (1000.0, 1000.0, 1750.0)


def test_a_decoder_that_needs_more_moves_the_first_picture_and_the_start() -> None:
    """Where somebody decoded, the decoder's word counts."""
    waits = startup(times(), arrivals(1000, 1750), decodable_ns=[1750 * NS_PER_MS])
    assert (waits.ttfc_ms, waits.first_decodable_frame_ms, waits.playback_start_ms) == (1000.0, 1750.0, 1750.0)


def test_a_session_without_chunks_has_no_waits() -> None:
    """None, not the time until somebody gave up."""
    waits = startup(times(video_start=3), [])
    assert (waits.video_start_ms, waits.ttfc_ms, waits.first_decodable_frame_ms, waits.playback_start_ms) == (
        3.0,
        None,
        None,
        None,
    )


def test_a_buffer_that_never_filled_has_no_start() -> None:
    """The first picture was there all the same."""
    waits = startup(times(), arrivals(1000), buffer_chunks=2)
    assert (waits.first_decodable_frame_ms, waits.playback_start_ms) == (1000.0, None)


def test_one_chunk_is_buffer_enough_unless_more_is_asked_for() -> None:
    """Playback starts with the first."""
    assert startup(times(), arrivals(1000, 1750)).playback_start_ms == 1000.0
    assert playback_start_ns(arrivals(1000, 1750), [1000 * NS_PER_MS]) == 1000 * NS_PER_MS


def test_stop_to_done_needs_both() -> None:
    """A session that ran to its end was not stopped."""
    assert stop_to_done_ms(times(stop_sent=2000, done=2030)) == 30.0
    assert stop_to_done_ms(times(done=2030)) is None
    assert stop_to_done_ms(times(stop_sent=2000)) is None


def test_the_first_session_is_the_cold_one() -> None:
    """Against the median of the others."""
    compared = cold_and_warm([9000.0, 1500.0, None, 1700.0])
    assert (compared.cold_ttfc_ms, compared.cold_penalty_ms) == (9000.0, 7400.0)
    assert compared.warm_ttfc_ms == (1500.0, 1700.0)


def test_one_session_alone_has_no_penalty() -> None:
    """Nothing to compare with."""
    assert cold_and_warm([9000.0]).cold_penalty_ms is None
    assert cold_and_warm([None, 1500.0]).cold_penalty_ms is None
    assert cold_and_warm([]).cold_ttfc_ms is None


def test_a_ghost_costs_the_next_session_what_its_first_chunk_comes_later() -> None:
    """Dropped at 5000, next session at 5100, its chunk at 8100: 3000 ms against 1500 undisturbed."""
    cost = recovery(
        dropped_ns=5000 * NS_PER_MS,
        next_times=times(5100),
        next_arrivals=arrivals(8100),
        undisturbed_ttfcs_ms=[1400.0, 1500.0, 1600.0],
    )
    assert (cost.next_ttfc_ms, cost.ghost_penalty_ms, cost.drop_to_first_chunk_ms) == (3000.0, 1500.0, 3100.0)


def test_a_next_session_that_never_came_through_has_no_recovery() -> None:
    """None, and the undisturbed ones are still told."""
    cost = recovery(dropped_ns=0, next_times=times(10), next_arrivals=[], undisturbed_ttfcs_ms=[1.0])
    assert (cost.next_ttfc_ms, cost.ghost_penalty_ms, cost.drop_to_first_chunk_ms) == (None, None, None)
    assert cost.undisturbed_ttfc_ms == (1.0,)


def test_one_slot_serves_in_the_order_of_arrival() -> None:
    """Three at once, given in another order: the second waits for the first's end, the third for the second's."""
    sessions = [times(20, ended=9000), times(0, ended=3000), times(10, ended=6000)]
    assert queue_waits_ms(sessions) == [5980.0, 0.0, 2990.0]


def test_two_slots_let_the_third_wait_for_the_first_to_end() -> None:
    """Whichever that is."""
    sessions = [times(0, ended=3000), times(10, ended=2000), times(20, ended=9000)]
    assert queue_waits_ms(sessions, slots=2) == [0.0, 0.0, 1980.0]


def test_sessions_apart_do_not_wait() -> None:
    """The slot was free before they came."""
    assert queue_waits_ms([times(0, ended=100), times(100, ended=200), times(500, ended=600)]) == [0.0, 0.0, 0.0]


def test_one_that_left_while_it_queued_never_had_the_slot() -> None:
    """Its own wait is unknown, and the next one waits for the first only."""
    assert queue_waits_ms([times(0, ended=3000), times(10, ended=500), times(20, ended=5000)]) == [0.0, None, 2980.0]


def test_behind_one_that_never_ended_nobody_is_served() -> None:
    """None, not forever in milliseconds."""
    assert queue_waits_ms([times(0), times(10, ended=20), times(15)]) == [0.0, None, None]


def test_one_that_ended_as_its_turn_came_had_it() -> None:
    """The wait is known to the last moment."""
    assert queue_waits_ms([times(0, ended=3000), times(10, ended=3000)]) == [0.0, 2990.0]


def test_a_server_has_at_least_one_slot() -> None:
    """None would serve nobody."""
    with pytest.raises(ValueError, match="slots is 0"):
        queue_waits_ms([], slots=0)
