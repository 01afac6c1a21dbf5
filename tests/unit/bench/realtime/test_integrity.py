"""bench.realtime.integrity: each kind of broken stream is counted under its own name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.bench.realtime.made import arrivals

from vision_bench.bench.realtime.integrity import Integrity, check_stream
from vision_bench.bench.realtime.records import ChunkArrival, FrameTime

WHOLE = arrivals(1000, 1750, 2500, trailer_ms=2501)


def pictures(count: int) -> list[FrameTime]:
    """Pictures at 16 fps, each unlike the others."""
    return [FrameTime(index / 16, 0, 832, 480, f"picture {index}") for index in range(count)]


def check(stream: list[ChunkArrival], frames: list[FrameTime] | None) -> Integrity:
    """At 832x480."""
    return check_stream(stream, frames, width=832, height=480)


def test_a_whole_stream_is_whole() -> None:
    """33 announced, 33 decoded, nothing else to say."""
    found = check(WHOLE, pictures(33))
    assert found.is_whole
    assert (found.announced_frames, found.expected_frames, found.decoded_frames, found.has_trailer) == (
        33,
        33,
        33,
        True,
    )


def test_a_stopped_stream_has_one_picture_less_and_is_whole() -> None:
    """session.stop sends no trailer, and the muxer keeps the last picture."""
    found = check(WHOLE[:2], pictures(20))
    assert (found.announced_frames, found.expected_frames, found.has_trailer, found.is_whole) == (21, 20, False, True)


def test_nothing_came() -> None:
    """An empty session is no crash and not -1 pictures."""
    assert check([], None).expected_frames == 0
    assert check([], []).is_whole


def test_nobody_looked() -> None:
    """Without decoding, what only a decoder can say is None; the stream can still be whole as far as it was seen."""
    found = check(WHOLE, None)
    assert (found.decoded_frames, found.pts_not_ascending, found.frames_of_other_size, found.repeated_frames) == (
        None,
        None,
        None,
        None,
    )
    assert found.is_whole


def test_pictures_without_a_digest_are_not_compared() -> None:
    """One missing digest makes the count None: a count of some would look like a count of all."""
    frames = pictures(33)
    frames[5] = replace(frames[5], digest=None)
    assert check(WHOLE, frames).repeated_frames is None


@pytest.mark.parametrize(
    ("name", "stream"),
    [
        ("chunks_of_other_length", [replace(WHOLE[0], received_bytes=999), *WHOLE[1:]]),
        ("transport_gaps", [WHOLE[0], *(replace(one, transport_index=one.transport_index + 1) for one in WHOLE[1:])]),
        ("generation_gaps", [WHOLE[0], replace(WHOLE[1], generation_index=2), replace(WHOLE[2], generation_index=3)]),
    ],
)
def test_what_the_socket_shows(name: str, stream: list[ChunkArrival]) -> None:
    """Bytes other than announced, a number left out between frames, a place left out in the rollout: one each."""
    found = check(stream, None)
    assert getattr(found, name) == 1
    assert not found.is_whole


@pytest.mark.parametrize(
    ("name", "frames"),
    [
        ("pts_not_ascending", [*pictures(32), FrameTime(31 / 16, 0, 832, 480, "last")]),
        ("frames_of_other_size", [*pictures(32), FrameTime(2.0, 0, 480, 832, "last")]),
        ("repeated_frames", [*pictures(32), FrameTime(2.0, 0, 832, 480, "picture 31")]),
    ],
)
def test_what_a_decoder_shows(name: str, frames: list[FrameTime]) -> None:
    """A time that does not rise, another size, the picture before once more: one each."""
    found = check(WHOLE, frames)
    assert getattr(found, name) == 1
    assert not found.is_whole


def test_a_missing_picture_is_not_whole() -> None:
    """32 of 33."""
    assert not check(WHOLE, pictures(32)).is_whole


def test_the_only_chunk_of_a_rollout_has_no_place_and_that_is_no_gap() -> None:
    """The server says null."""
    only = [replace(WHOLE[0], generation_index=None), replace(WHOLE[3], transport_index=1)]
    found = check(only, pictures(9))
    assert (found.generation_gaps, found.is_whole) == (0, True)


def test_empty_first_chunks_are_a_gap() -> None:
    """They are never announced: the first to come is chunk 3."""
    late = [replace(WHOLE[0], generation_index=3)]
    assert check(late, None).generation_gaps == 1
