"""Whether the stream was what the server said it was: bytes, pictures, their times, sizes and order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from vision_bench.bench.realtime.records import ChunkArrival, FrameTime, media_chunks


@dataclass(frozen=True, slots=True)
class Integrity:
    """Counts of what is wrong. None means that nobody looked."""

    chunks_of_other_length: int
    """Binary frames whose bytes are not as many as announced."""
    transport_gaps: int
    """Binary frames whose number does not follow the one before."""
    generation_gaps: int
    """Media chunks whose place in the rollout does not follow the one before; a null place is no gap."""
    has_trailer: bool
    announced_frames: int
    expected_frames: int
    """Announced, less the last one when no trailer brought it."""
    decoded_frames: int | None
    pts_not_ascending: int | None
    frames_of_other_size: int | None
    repeated_frames: int | None
    """Pictures with the pixels of the one before; None unless every picture has a digest."""

    @property
    def is_whole(self) -> bool:
        """Nothing that was looked at is wrong; a missing trailer alone is not (``session.stop`` sends none)."""
        wrong = (
            self.chunks_of_other_length,
            self.transport_gaps,
            self.generation_gaps,
            self.pts_not_ascending,
            self.frames_of_other_size,
            self.repeated_frames,
        )
        all_decoded = self.decoded_frames is None or self.decoded_frames == self.expected_frames
        return all_decoded and not any(wrong)


def check_stream(
    arrivals: Sequence[ChunkArrival], frames: Sequence[FrameTime] | None, *, width: int, height: int
) -> Integrity:
    """Compare what came with what was announced and asked for.

    Args:
        arrivals: the session's binary frames in order of arrival.
        frames: its pictures in order of decoding; None when the stream was not decoded.
        width: pixels asked for.
        height: pixels asked for.
    """
    has_trailer = any(arrival.is_trailer for arrival in arrivals)
    announced = sum(arrival.announced_frames for arrival in arrivals)
    digests = None if frames is None else [frame.digest for frame in frames]
    return Integrity(
        chunks_of_other_length=sum(arrival.announced_bytes != arrival.received_bytes for arrival in arrivals),
        transport_gaps=sum(place != arrival.transport_index for place, arrival in _after_each(arrivals)),
        generation_gaps=_generation_gaps(media_chunks(arrivals)),
        has_trailer=has_trailer,
        announced_frames=announced,
        expected_frames=announced if has_trailer else max(0, announced - 1),
        decoded_frames=None if frames is None else len(frames),
        pts_not_ascending=None
        if frames is None
        else sum(after.pts_seconds <= before.pts_seconds for before, after in pairwise(frames)),
        frames_of_other_size=None
        if frames is None
        else sum((frame.width, frame.height) != (width, height) for frame in frames),
        repeated_frames=None
        if digests is None or None in digests
        else sum(before == after for before, after in pairwise(digests)),
    )


def _after_each(arrivals: Sequence[ChunkArrival]) -> list[tuple[int, ChunkArrival]]:
    """Each arrival with the number it should have: one more than that of the one before, 0 for the first."""
    expected = [0, *(arrival.transport_index + 1 for arrival in arrivals)]
    return list(zip(expected, arrivals, strict=False))


def _generation_gaps(chunks: Sequence[ChunkArrival]) -> int:
    gaps = 0
    expected = 0
    for chunk in chunks:
        if chunk.generation_index is not None:
            gaps += chunk.generation_index != expected
            expected = chunk.generation_index
        expected += 1
    return gaps
