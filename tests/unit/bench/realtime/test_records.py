"""bench.realtime.records: arrivals to the published records, and when a picture is there."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.bench.realtime.made import arrivals

from vision_bench.bench.realtime.records import NS_PER_MS, chunk_records, decodable_times_ns


def test_a_trailer_makes_no_record() -> None:
    """Three chunks and a trailer are three records, timed from session.start."""
    records = chunk_records(arrivals(1100, 1850, 2600, trailer_ms=2601), start_sent_ns=100 * NS_PER_MS)
    assert [(record.index, record.arrival_s, record.inter_arrival_s) for record in records] == [
        (0, 1.0, 1.0),
        (1, 1.75, 0.75),
        (2, 2.5, 0.75),
    ]
    assert [record.num_frames for record in records] == [9, 12, 12]


def test_the_only_chunk_of_a_rollout_is_chunk_0_although_the_server_says_null() -> None:
    """The published client stops with a TypeError here."""
    only = [replace(arrivals(1000)[0], generation_index=None)]
    assert [record.index for record in chunk_records(only, start_sent_ns=0)] == [0]


def test_a_gap_in_the_rollout_stays_a_gap() -> None:
    """Chunks that were never announced (empty ones) leave their numbers free."""
    late = [replace(chunk, generation_index=chunk.transport_index + 3) for chunk in arrivals(1000, 2000)]
    assert [record.index for record in chunk_records(late, start_sent_ns=0)] == [3, 4]


def test_the_bytes_are_those_that_came() -> None:
    """Not those announced."""
    short = [replace(arrivals(1000)[0], received_bytes=7)]
    assert chunk_records(short, start_sent_ns=0)[0].byte_length == 7


def test_a_picture_is_there_one_chunk_late_when_it_is_the_last_of_its_chunk() -> None:
    """8, 20, 32 pictures after three chunks of 9, 12, 12; the trailer brings the 33rd."""
    times = decodable_times_ns(arrivals(1, 2, 3, trailer_ms=4))
    assert [times.count(at * NS_PER_MS) for at in (1, 2, 3, 4)] == [8, 12, 12, 1]
    assert times == sorted(times)


def test_without_a_trailer_the_last_picture_never_comes() -> None:
    """session.stop sends none."""
    assert len(decodable_times_ns(arrivals(1, 2))) == 20
    assert decodable_times_ns([]) == []
