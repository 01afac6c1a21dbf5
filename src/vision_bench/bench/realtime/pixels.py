"""What a reference server wrote into its pictures, against what it said of them: the proof that the stream is the one.

A server that writes no marks has none, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vision_bench.bench.realtime.records import ChunkArrival, media_chunks
from vision_bench.wire.realtime.marks import Marks, event_digest
from vision_bench.wire.realtime.rollout import pixel_frames_in_chunk


@dataclass(frozen=True, slots=True)
class PixelProof:
    """Counts over one session's pictures."""

    pictures: int
    read: int
    """Pictures whose marks could be read."""
    other_number: int
    """Read, and not numbered as it came."""
    other_chunk: int
    """Read, and of another chunk than was announced."""
    events_started: int
    """Events that a chunk listed as started, and whose first picture was decoded."""
    events_seen_there: int
    """Of those, the ones that begin in the pictures exactly with that chunk."""


def prove(marks: Sequence[Marks | None], arrivals: Sequence[ChunkArrival]) -> PixelProof | None:
    """Compare the marks of a session's pictures, in order of decoding, with what announced them; None without any."""
    known = [(place, one) for place, one in enumerate(marks) if one is not None]
    if not known:
        return None
    chunk_of, first_of = _announced_places(media_chunks(arrivals), len(marks))
    first_seen: dict[int, int] = {}
    for place, one in known:
        for digest in one.event_digests:
            first_seen.setdefault(digest, place)
    started = [
        (event_digest(event_id), first)
        for chunk, first in zip(media_chunks(arrivals), first_of, strict=True)
        for event_id in chunk.started_event_ids
    ]
    decoded = [(digest, first) for digest, first in started if first < len(marks)]
    return PixelProof(
        pictures=len(marks),
        read=len(known),
        other_number=sum(one.frame != place for place, one in known),
        other_chunk=sum(place < len(chunk_of) and one.chunk != chunk_of[place] for place, one in known),
        events_started=len(decoded),
        events_seen_there=sum(first_seen.get(digest) == first for digest, first in decoded),
    )


def _announced_places(chunks: Sequence[ChunkArrival], pictures: int) -> tuple[list[int], list[int]]:
    """Of each picture the chunk that it was announced with, and of each chunk the place of its first picture.

    A chunk that was not announced has its pictures in the stream all the same, before those of the next one.
    ``pictures`` were decoded: what is announced beyond them is nobody's, however much that is.
    """
    chunk_of: list[int] = []
    first_of: list[int] = []
    following = 0
    for number, chunk in enumerate(chunks):
        index = number if chunk.generation_index is None else chunk.generation_index
        while following < index and len(chunk_of) < pictures:
            chunk_of += [following] * pixel_frames_in_chunk(following)
            following += 1
        first_of.append(len(chunk_of))
        chunk_of += [index] * min(chunk.announced_frames, max(0, pictures - len(chunk_of)))
        following = index + 1
    return chunk_of, first_of
