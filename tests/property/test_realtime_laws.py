"""Laws of generated video: chunks and frames, playback, and what is counted from it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vision_bench.bench.realtime.interactions import summarise_interactions
from vision_bench.bench.realtime.metrics import ChunkRecord, aggregate_metrics, compute_metrics, simulate_playback
from vision_bench.bench.realtime.playback import continuous_play_ratio, freezes, play_frames, stalling
from vision_bench.bench.realtime.records import ChunkArrival, SentEvent, SessionTimes, decodable_times_ns
from vision_bench.bench.realtime.sessions import queue_waits_ms
from vision_bench.bench.realtime.workload import (
    CAMERA_PATTERNS,
    build_camera_script,
    chunks_for_num_frames,
    default_workload,
    num_frames_for_chunks,
    pixel_frames_in_chunk,
)

FPS = 16
counts = st.integers(1, 500)
# Sixteenths of a second: sums of them and of frames at 16 fps are exact, so that equalities can be asked for.
gaps = st.lists(st.integers(0, 64).map(lambda sixteenths: sixteenths / 16), min_size=1, max_size=20)


def records_of(gaps_s: Sequence[float]) -> list[ChunkRecord]:
    """Chunks that come after those gaps."""
    pairs = zip(accumulate(gaps_s), gaps_s, strict=True)
    return [ChunkRecord(index, at, gap, 1000, pixel_frames_in_chunk(index)) for index, (at, gap) in enumerate(pairs)]


def video_seconds(records: Sequence[ChunkRecord]) -> float:
    """Length of what came."""
    return sum(record.num_frames for record in records) / FPS


@given(counts)
def test_frames_and_chunks_are_inverse(chunks: int) -> None:
    """What n chunks hold gives n chunks again; one frame less gives one chunk less."""
    frames = num_frames_for_chunks(chunks)
    assert chunks_for_num_frames(frames) == chunks
    assert chunks_for_num_frames(frames - 1) == chunks - 1
    assert frames == sum(pixel_frames_in_chunk(index) for index in range(chunks))


@given(st.integers(1, 6000))
def test_a_server_never_generates_more_frames_than_asked_for(frames: int) -> None:
    """And never twelve fewer."""
    chunks = chunks_for_num_frames(frames)
    generated = num_frames_for_chunks(chunks) if chunks else 0
    assert 0 <= frames - generated < 12


@given(counts, st.sampled_from(CAMERA_PATTERNS))
def test_a_script_has_an_entry_a_chunk_and_asks_for_its_frames(chunks: int, pattern: str) -> None:
    """Whatever the pattern; the workload's numbers follow from the script alone."""
    assert len(build_camera_script(chunks, pattern)) == chunks
    made = default_workload(image_reference="data:,", num_chunks=chunks, camera_pattern=pattern)
    assert (made.num_chunks, made.num_frames) == (chunks, num_frames_for_chunks(chunks))


@given(gaps)
def test_no_stall_when_every_chunk_is_early(gaps_s: list[float]) -> None:
    """A gap no longer than the chunk before plays."""
    early = [gaps_s[0], *(min(gap, pixel_frames_in_chunk(before) / FPS) for before, gap in enumerate(gaps_s[1:]))]
    played = simulate_playback(records_of(early), fps=FPS)
    assert (played.underrun_count, played.total_stall_s, played.first_underrun_chunk) == (0, 0.0, None)


@given(gaps, st.data())
def test_a_later_chunk_never_shortens_the_stalls(gaps_s: list[float], data: st.DataObject) -> None:
    """Any chunk but those that fill the buffer: they move the start."""
    records = records_of([*gaps_s, 0.5])
    depth = data.draw(st.integers(1, len(records) - 1))
    place = data.draw(st.integers(depth, len(records) - 1))
    later = list(records)
    later[place] = replace(later[place], arrival_s=later[place].arrival_s + data.draw(st.integers(1, 64)) / 16)
    before = simulate_playback(records, fps=FPS, buffer_chunks=depth)
    after = simulate_playback(later, fps=FPS, buffer_chunks=depth)
    assert after.total_stall_s >= before.total_stall_s


@given(gaps, st.data())
def test_a_session_is_its_video_and_its_stalls(gaps_s: list[float], data: st.DataObject) -> None:
    """Span = video + stalls; it ends when the chunk that decides is there and what is left has been played."""
    records = records_of(gaps_s)
    depth = data.draw(st.integers(1, len(records)))
    played = simulate_playback(records, fps=FPS, buffer_chunks=depth)
    assert played.playback_span_s == video_seconds(records) + played.total_stall_s
    start = records[depth - 1].arrival_s
    ends = [start + video_seconds(records)]
    ends += [record.arrival_s + video_seconds(records[record.index :]) for record in records]
    assert start + played.playback_span_s == max(ends)


@given(gaps)
def test_a_deeper_buffer_never_stalls_longer(gaps_s: list[float]) -> None:
    """And a buffer of everything never stalls."""
    records = records_of(gaps_s)
    depths = range(1, len(records) + 1)
    stalls = [simulate_playback(records, fps=FPS, buffer_chunks=depth).total_stall_s for depth in depths]
    assert stalls == sorted(stalls, reverse=True)
    assert stalls[-1] == 0.0


@given(gaps, st.data())
def test_continuous_play_is_whole_exactly_when_the_player_never_waits(gaps_s: list[float], data: st.DataObject) -> None:
    """The two players agree on a session without a wait, and on no other."""
    records = records_of(gaps_s)
    depth = data.draw(st.integers(1, len(records)))
    ratio = continuous_play_ratio(records, fps=FPS, buffer_chunks=depth)
    waits = simulate_playback(records, fps=FPS, buffer_chunks=depth).underrun_count
    assert (ratio == 1.0) == (waits == 0)


@given(gaps, st.integers(0, 30), st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(gaps_s: list[float], warmup: int, draw: random.Random) -> None:
    """They are sorted by their index."""
    records = records_of(gaps_s)
    shuffled = draw.sample(records, len(records))
    assert compute_metrics(shuffled, fps=FPS, warmup_chunks=warmup) == compute_metrics(
        records, fps=FPS, warmup_chunks=warmup
    )


@given(gaps, st.integers(0, 30), st.integers(1, 2000))
def test_every_steady_chunk_met_its_deadline_or_did_not(gaps_s: list[float], warmup: int, slo_ms: int) -> None:
    """Attainment and violations add up; steady chunks are as many as their intervals."""
    metrics = compute_metrics(records_of(gaps_s), fps=FPS, warmup_chunks=warmup, slo_ms=slo_ms)
    steady = metrics["steady_chunks"]
    assert steady == metrics["interval_steady"].get("count", 0)
    if metrics["steady_state_reached"]:
        assert metrics["slo_attainment"] * steady + metrics["slo_violations"] == pytest.approx(steady)


@given(st.lists(gaps, min_size=2, max_size=5))
def test_sessions_pool_their_intervals(sessions: list[list[float]]) -> None:
    """The combined mean is that of all steady intervals thrown together."""
    metrics = [compute_metrics(records_of(gaps_s), fps=FPS, warmup_chunks=1) for gaps_s in sessions]
    pooled = [gap * 1000 for gaps_s in sessions for gap in gaps_s[1:-1]]
    combined = aggregate_metrics(metrics, fps=FPS)
    expected = sum(pooled) / len(pooled) if pooled else None
    assert combined["steady_interval_ms_mean"] == (None if expected is None else pytest.approx(expected))


@given(st.lists(st.integers(0, 10**10), max_size=60), st.integers(1, 120), st.integers(0, 10**10))
def test_no_picture_is_shown_before_it_is_there_or_due(ready_ns: list[int], fps: int, start_ns: int) -> None:
    """All stalls together are as long as the latest picture is late; pictures follow each other."""
    ready_ns = sorted(ready_ns)
    played = play_frames(ready_ns, fps=fps, start_ns=start_ns)
    due_ns = [start_ns + round(index * 1e9 / fps) for index in range(len(ready_ns))]
    assert all(shown >= max(pair) for shown, *pair in zip(played.shown_ns, ready_ns, due_ns, strict=True))
    assert list(played.shown_ns) == sorted(played.shown_ns)
    assert sum(stall.duration_ms for stall in played.stalls) == pytest.approx(played.worst_lateness_ms or 0.0)
    assert (played.late_frames == 0) == (played.stalls == ())
    assert stalling(played, fps=fps, start_sent_ns=0).stall_count <= len(played.stalls)


@given(st.lists(st.integers(0, 10**10), max_size=80))
def test_freezes_are_part_of_what_was_shown(shown_ns: list[int]) -> None:
    """Never longer than from the first picture to the last."""
    shown_ns = sorted(shown_ns)
    found = freezes(shown_ns)
    if found.total_ms is None:
        assert len(shown_ns) < 6
    else:
        assert found.total_ms <= (shown_ns[-1] - shown_ns[0]) / 1e6 + 1e-6


@given(st.lists(st.integers(0, 40), min_size=1, max_size=20), st.booleans())
def test_every_picture_but_the_last_needs_no_trailer(announced: list[int], has_trailer: bool) -> None:
    """As many times as pictures announced, less one without a trailer, in order."""
    stream = [ChunkArrival(index, index, False, index, 1, 1, frames) for index, frames in enumerate(announced)]
    if has_trailer:
        stream.append(ChunkArrival(len(stream), None, True, len(stream), 1, 1, 0))
    times = decodable_times_ns(stream)
    assert len(times) == max(0, sum(announced) - (not has_trailer))
    assert times == sorted(times)


@given(
    st.lists(
        st.tuples(st.integers(0, 100), st.sampled_from(["acked", "refused", "lost"]), st.integers(-1, 9)), max_size=12
    )
)
def test_every_event_is_answered_refused_or_lost(drawn: list[tuple[int, str, int]]) -> None:
    """The counts add up; who started was sent, who never started was acked."""
    events = [
        SentEvent(
            f"event-{index}",
            sent,
            sent + 1 if answer == "acked" else None,
            sent + 1 if answer == "refused" else None,
        )
        for index, (sent, answer, _) in enumerate(drawn)
    ]
    chunks = [
        ChunkArrival(
            place,
            place,
            False,
            200 + place,
            1,
            1,
            12,
            started_event_ids=tuple(f"event-{index}" for index, (_, _, at) in enumerate(drawn) if at == place),
        )
        for place in range(10)
    ]
    summary = summarise_interactions([(events, chunks)])
    assert summary.acked + summary.refused + summary.unanswered == summary.sent == len(events)
    assert summary.started == sum(at >= 0 for _, _, at in drawn)
    assert 0 <= summary.acked_too_late <= summary.acked_never_started <= summary.acked


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=15), st.integers(1, 4))
def test_nobody_waits_less_than_nothing_or_behind_free_slots(drawn: list[tuple[int, int]], slots: int) -> None:
    """Waits are not negative, and as many slots as sessions make them all 0."""
    sessions = [SessionTimes(start_sent_ns=start, ended_ns=start + length) for start, length in drawn]
    assert all(wait is None or wait >= 0 for wait in queue_waits_ms(sessions, slots=slots))
    assert set(queue_waits_ms(sessions, slots=len(sessions))) == {0.0}
