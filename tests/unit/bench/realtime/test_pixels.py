"""Marks read back from the pictures, against what announced them."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.bench.realtime.made import arrivals

from vision_bench.bench.realtime.pixels import prove
from vision_bench.wire.realtime.marks import Marks, marks_of

CHUNKS = arrivals(0, 1, 2, started={1: ["a"]})
CHUNK_OF = [0] * 9 + [1] * 12 + [2] * 12


def true_marks() -> list[Marks | None]:
    return [marks_of(place, chunk, ["a"] if chunk >= 1 else []) for place, chunk in enumerate(CHUNK_OF)]


def test_marks_that_are_as_announced_prove_the_stream() -> None:
    """Every number and chunk as announced, and the event from the first picture of its chunk on."""
    proof = prove(true_marks(), CHUNKS)
    assert proof is not None
    assert (proof.pictures, proof.read, proof.other_number, proof.other_chunk) == (33, 33, 0, 0)
    assert (proof.events_started, proof.events_seen_there) == (1, 1)


def test_what_differs_is_counted() -> None:
    """A picture that cannot be read, one with another number, one of another chunk, an event a picture late."""
    marks = true_marks()
    marks[3] = None
    marks[4] = Marks(5, 0)
    marks[5] = Marks(5, 2)
    marks[9] = Marks(9, 1)
    proof = prove(marks, CHUNKS)
    assert proof is not None
    assert (proof.read, proof.other_number, proof.other_chunk) == (32, 1, 1)
    assert (proof.events_started, proof.events_seen_there) == (1, 0)


def test_a_server_without_marks_proves_nothing() -> None:
    """And neither does a stream without pictures."""
    assert prove([None] * 33, CHUNKS) is None
    assert prove([], CHUNKS) is None


def test_an_event_whose_picture_was_not_decoded_is_not_judged() -> None:
    """A stream that was cut before the chunk."""
    proof = prove(true_marks()[:9], CHUNKS)
    assert proof is not None
    assert proof.events_started == 0


def test_a_rollout_of_one_chunk_is_numbered_by_its_place() -> None:
    """Its index is null."""
    (only,) = arrivals(0)
    proof = prove([Marks(place, 0) for place in range(8)], [replace(only, generation_index=None)])
    assert proof is not None
    assert proof.other_chunk == 0


def test_pictures_of_a_chunk_that_was_not_announced_are_its_own() -> None:
    """The encoder held chunk 1 back: its pictures come with chunk 2, marked 1, and nothing is of another chunk."""
    first, _, third = arrivals(0, 1, 2, started={2: ["a"]})
    marks = [marks_of(place, chunk, ["a"] if chunk >= 2 else []) for place, chunk in enumerate(CHUNK_OF)]
    proof = prove(marks, [first, third])
    assert proof is not None
    assert (proof.other_number, proof.other_chunk, proof.events_started, proof.events_seen_there) == (0, 0, 1, 1)


def test_numbers_that_no_stream_has_take_no_memory() -> None:
    """A server may announce any index and any count; only what was decoded is looked at."""
    first, second, _ = CHUNKS
    huge = [replace(first, announced_frames=2**53), replace(second, generation_index=2**53)]
    proof = prove(true_marks(), huge)
    assert proof is not None
    assert (proof.other_chunk, proof.events_started) == (24, 0)
