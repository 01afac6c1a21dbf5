"""bench.realtime.playback: pictures against their schedule, stalls, freezes, continuous play."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.unit.bench.realtime.made import arrivals

from vision_bench.bench.realtime.metrics import ChunkRecord
from vision_bench.bench.realtime.playback import (
    continuous_play,
    continuous_play_ratio,
    freezes,
    play_frames,
    playback_start_s,
    stalling,
)
from vision_bench.bench.realtime.records import NS_PER_MS, chunk_records, decodable_times_ns

MS = NS_PER_MS


def records(*at_ms: float) -> list[ChunkRecord]:
    """Published records of chunks at those times."""
    return chunk_records(arrivals(*at_ms), start_sent_ns=0)


def shown_with_gap(gap_ms: float, *, usual_ms: int = 50, before: int = 40) -> list[int]:
    """Pictures every ``usual_ms`` and then one after ``gap_ms``."""
    return [round(ms * MS) for ms in [*(index * usual_ms for index in range(before)), (before - 1) * usual_ms + gap_ms]]


def test_pictures_that_are_there_are_shown_on_their_schedule() -> None:
    """At 10 a second from the start, none late, no stall."""
    played = play_frames([0, 0, 0, 0], fps=10, start_ns=100 * MS)
    assert played.shown_ns == (100 * MS, 200 * MS, 300 * MS, 400 * MS)
    assert (played.late_frames, played.late_ratio, played.worst_lateness_ms, played.stalls) == (0, 0.0, 0.0, ())


def test_one_late_picture_moves_the_waiting_player_and_misses_the_schedule_once_per_picture() -> None:
    """The third of four comes 250 ms late: one stall, two pictures behind schedule, the fourth shown 100 ms later."""
    played = play_frames([0, 0, 450 * MS, 450 * MS], fps=10, start_ns=0)
    assert played.shown_ns == (0, 100 * MS, 450 * MS, 550 * MS)
    assert [(stall.media_seconds, stall.duration_ms) for stall in played.stalls] == [(0.2, 250.0)]
    assert (played.late_frames, played.late_ratio, played.worst_lateness_ms) == (2, 0.5, 250.0)


def test_a_schedule_does_not_drift_with_an_odd_rate() -> None:
    """Picture 29970 at 29.97 a second is due after 1000 s to the nanosecond."""
    played = play_frames([0] * 29971, fps=29.97, start_ns=0)
    assert played.shown_ns[-1] == 1_000_000_000_000


def test_no_pictures_are_no_numbers() -> None:
    """None where there is nothing to divide by."""
    played = play_frames([], fps=10, start_ns=0)
    assert (played.frames, played.late_ratio, played.worst_lateness_ms) == (0, None, None)
    described = stalling(played, fps=10, start_sent_ns=0)
    assert (described.initial_loading_ms, described.stall_ratio, described.events) == (None, None, ())


def test_stalls_are_told_as_p1203_reads_them() -> None:
    """Loading of 1.5 s at media time 0, then 250 ms at 0.2 s and 100 ms at 0.5 s, in media time."""
    ready = [0, 0, 1950, 1950, 1950, 2350, 2350]
    played = play_frames([ms * MS for ms in ready], fps=10, start_ns=1500 * MS)
    described = stalling(played, fps=10, start_sent_ns=0)
    assert described.events == ((0.0, 1.5), (0.2, 0.25), (0.5, 0.1))
    assert (described.stall_count, described.total_stall_ms, described.longest_stall_ms) == (2, 350.0, 250.0)
    assert described.mean_seconds_between_stalls == pytest.approx(0.3)
    assert described.stall_ratio == pytest.approx(350 / 1050)


def test_the_time_between_stalls_is_a_mean() -> None:
    """Stalls at 0.1, 0.2 and 0.6 s of media: 0.1 and 0.4 between them."""
    ready = [0, 200, 400, 400, 400, 400, 2000]
    described = stalling(play_frames([ms * MS for ms in ready], fps=10, start_ns=0), fps=10, start_sent_ns=0)
    assert described.stall_count == 3
    assert described.mean_seconds_between_stalls == pytest.approx(0.25)


def test_a_wait_before_the_first_picture_is_loading_and_no_stall() -> None:
    """Nothing had been shown yet."""
    described = stalling(play_frames([500 * MS], fps=10, start_ns=200 * MS), fps=10, start_sent_ns=0)
    assert (described.stall_count, described.total_stall_ms, described.initial_loading_ms) == (0, 0.0, 500.0)


def test_a_freeze_starts_150_ms_above_the_mean_and_three_times_above_it() -> None:
    """29 gaps of 50 ms and the judged one, g: the mean is (1450 + g) / 30, so 205.17 ms freeze and 205.1 do not."""
    assert freezes(shown_with_gap(205.1)).count == 0
    frozen = freezes(shown_with_gap(205.2))
    assert frozen.count == 1
    assert frozen.total_ms == pytest.approx(205.2)
    assert frozen.ratio == pytest.approx(205.2 / (39 * 50 + 205.2))
    later = freezes([at + 10**12 for at in shown_with_gap(205.2)])
    assert later == frozen, "the clock's zero is nobody's business"


def test_at_a_low_rate_three_times_the_mean_decides() -> None:
    """With 200 ms between pictures 355 ms is above mean + 150 and no freeze; the factor's edge is 644.4 ms."""
    assert freezes(shown_with_gap(355, usual_ms=200)).count == 0
    assert freezes(shown_with_gap(644, usual_ms=200)).count == 0
    assert freezes(shown_with_gap(645, usual_ms=200)).count == 1


def test_fewer_than_five_gaps_cannot_say() -> None:
    """The count is None, not 0."""
    assert freezes([0, 50 * MS, 100 * MS, 5000 * MS]).count is None
    assert freezes(shown_with_gap(5000, before=5)).count == 1


def test_the_mean_is_of_the_last_thirty_gaps() -> None:
    """After thirty slow gaps a fast stream's old gaps no longer make one of them a freeze."""
    slow = [0]
    for gap_ms in [10] * 60 + [400] * 40:
        slow.append(slow[-1] + gap_ms * MS)
    assert freezes(slow).count == sum(
        max(3 * mean, mean + 150) <= 400 for mean in ((390 * slow_ones + 300) / 30 for slow_ones in range(1, 31))
    )


def test_playback_starts_when_the_buffer_is_full() -> None:
    """With the chunk of that number; never, when it did not come."""
    chunks = records(1000, 1500, 2500)
    assert [playback_start_s(chunks, buffer_chunks=depth) for depth in (1, 2, 3, 4)] == [1.0, 1.5, 2.5, None]
    assert playback_start_s(chunks) == 1.0


def test_continuous_play_keeps_its_anchor() -> None:
    """Due at 1000, 1562.5, 2312.5, 3062.5 ms: a long wait makes the next chunk late too; a waiting player hides it."""
    chunks = records(1000, 1500, 3600, 3700)
    assert continuous_play_ratio(chunks, fps=16) == 0.5
    assert continuous_play_ratio(chunks, fps=16, buffer_chunks=4) == 1.0


def test_a_chunk_that_comes_when_it_is_due_is_ready() -> None:
    """Equality is in time, as in the published playback."""
    assert continuous_play_ratio(records(1000, 1562.5), fps=16) == 1.0
    assert continuous_play_ratio(records(1000, 1562.6), fps=16) == 0.5


def test_continuous_play_weighs_sessions_alike_and_counts_those_that_never_played() -> None:
    """Ratios 1.0 and 0.5 are 0.75 whatever their lengths; a session without chunks has none and is counted."""
    combined = continuous_play([records(1000), records(1000, 9000), []], fps=16)
    assert (combined.sessions, combined.sessions_not_played, combined.mean) == (2, 1, 0.75)
    assert continuous_play([], fps=16).mean is None


@pytest.mark.parametrize("fps", [0, -1, float("nan")])
def test_no_player_runs_at_no_rate(fps: float) -> None:
    """The value is in the message."""
    for call in (
        lambda: play_frames([0], fps=fps, start_ns=0),
        lambda: continuous_play_ratio(records(1000), fps=fps),
    ):
        with pytest.raises(ValueError, match="fps is"):
            call()


def test_no_buffer_is_no_start() -> None:
    """Below one chunk nothing can be shown."""
    with pytest.raises(ValueError, match="buffer_chunks is 0"):
        playback_start_s(records(1000), buffer_chunks=0)


def test_chunks_just_in_time_stall_a_player_by_one_picture() -> None:
    """The last picture of a chunk comes with the next one, one period late at 16 fps; from there on the lag is paid."""
    chunks = arrivals(1000, 1562.5, 2312.5, 3062.5, trailer_ms=3062.5)
    played = play_frames(decodable_times_ns(chunks), fps=16, start_ns=1000 * MS)
    assert [stall.media_seconds for stall in played.stalls] == [8 / 16]
    assert played.stalls[0].duration_ms == pytest.approx(62.5)
    assert all(after > before for before, after in pairwise(played.shown_ns))
