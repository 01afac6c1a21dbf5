"""A reference and the frames that are held: which of them it names, now or when they have come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vision_bench.live.failures import StreamFailure
from vision_bench.live.references import Anchor, FrameReference, SegmentReference
from vision_bench.live.ring import Frame, Ring


def select(ring: Ring, reference: FrameReference | SegmentReference) -> list[Frame]:
    """The frames that ``reference`` names among those held now; at least one, ascending.

    Raises:
        StreamFailure: ``frame_not_yet_produced``, ``frame_evicted`` or ``segment_empty`` for what is not held,
            ``segment_invalid`` for a segment that ends at or before its start.
    """
    if isinstance(reference, FrameReference):
        return [_frame(ring, reference)]
    return _segment(ring, reference)


async def select_in_time(ring: Ring, reference: FrameReference | SegmentReference) -> list[Frame]:
    """As ``select``, after waiting up to ``wait_ms`` for what may still come.

    A frame is waited for until it is there, a segment until no more frames can fall into it; one that ends at the live
    edge, until it holds a frame. What the frames held show to be past is not waited for.
    """
    if reference.wait_ms:
        await ring.wait_for(
            lambda: None if _may_still_come(ring, reference) else True, timeout_seconds=reference.wait_ms / 1_000
        )
    return select(ring, reference)


def on_grid(frames: Sequence[Frame], *, before_ns: int | None, max_fps: float) -> list[Frame]:
    """At most one frame for each ``1 / max_fps`` of the stream's clock: the first that falls into its cell.

    Cells lie around the multiples of ``1 / max_fps``, so whether a frame is chosen depends on it and the frame before
    it alone, not on where a question begins: questions that overlap choose the same frames. A stream whose frames are
    ``1 / max_fps`` apart has each in the middle of a cell, and keeps them all in spite of jitter below half of that.
    Counted from a question's first frame, a window that moves would choose others each time.

    Args:
        frames: neighbours, ascending.
        before_ns: the stream's time of the frame before them; None if they begin the stream.

    Returns:
        The chosen frames; the newest alone when none of the frames is the first of a cell.
    """
    chosen = []
    last_cell = None if before_ns is None else _cell(before_ns, max_fps)
    for frame in frames:
        cell = _cell(frame.stream_ns, max_fps)
        if cell != last_cell:
            chosen.append(frame)
            last_cell = cell
    return chosen or list(frames[-1:])


def _cell(stream_ns: int, max_fps: float) -> int:
    return math.floor(stream_ns * max_fps / 1e9 + 0.5)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an anchor lies: before the frame ``index``, and at ``ms`` of the stream's clock where that is known."""

    index: int
    ms: int | None
    is_index: bool = False

    def is_behind(self, other: _Place) -> bool:
        """Whether this lies after ``other``, as far as both are known on one axis."""
        if self.is_index and other.is_index:
            return self.index > other.index
        return self.ms is None or other.ms is None or self.ms > other.ms


def _place(ring: Ring, anchor: Anchor) -> _Place:
    if anchor.kind == "frame_index":
        index = _lifetime_index(ring, anchor)
        is_held = ring.first_index <= index < ring.next_index
        return _Place(index, ring[index].stream_ms if is_held else None, is_index=True)
    ms = _moment_ms(ring, anchor)
    return _Place(ring.index_at(ms), ms)


def _lifetime_index(ring: Ring, anchor: Anchor) -> int:
    """May be negative: so many frames have not been there yet."""
    return anchor.value if anchor.value >= 0 else ring.next_index + anchor.value


def _moment_ms(ring: Ring, anchor: Anchor) -> int:
    """The time an anchor names; an offset in an empty ring counts from 0."""
    if anchor.kind == "timestamp_ms" or not len(ring):
        return anchor.value
    return ring[ring.next_index - 1 if anchor.value < 0 else ring.first_index].stream_ms + anchor.value


def _frame(ring: Ring, reference: FrameReference) -> Frame:
    if reference.anchor.kind == "frame_index":
        return _frame_by_index(ring, reference)
    found = _frame_by_time(ring, reference)
    if found is not None:
        return found
    ms = _moment_ms(ring, reference.anchor)
    if reference.clamp and len(ring):
        oldest, newest = ring[ring.first_index], ring[ring.next_index - 1]
        if not oldest.stream_ms <= ms <= newest.stream_ms:
            return oldest if ms < oldest.stream_ms else newest
    way = {"nearest": "around", "forward": "after", "backward": "before"}[reference.direction]
    raise StreamFailure(
        "segment_empty", f"no frame is within {reference.tolerance_ms} ms {way} {ms} ms; {_what_is_held(ring)}"
    )


def _frame_by_index(ring: Ring, reference: FrameReference) -> Frame:
    index = _lifetime_index(ring, reference.anchor)
    if reference.clamp and len(ring):
        index = min(max(index, ring.first_index), ring.next_index - 1)
    if not 0 <= index < ring.next_index:
        raise StreamFailure(
            "frame_not_yet_produced",
            f"frame_index {reference.anchor.value} has not come yet; {_what_is_held(ring)}; wait_ms waits for it",
        )
    if index < ring.first_index:
        raise StreamFailure("frame_evicted", f"frame {index} is no longer held; {_what_is_held(ring)}")
    return ring[index]


def _frame_by_time(ring: Ring, reference: FrameReference) -> Frame | None:
    """The frame within the tolerance; of two that are equally near, the newer."""
    ms = _moment_ms(ring, reference.anchor)
    near = {
        "nearest": (ring.index_at(ms), ring.index_at(ms + 1) - 1),
        "forward": (ring.index_at(ms),),
        "backward": (ring.index_at(ms + 1) - 1,),
    }[reference.direction]
    held = [ring[index] for index in near if ring.first_index <= index < ring.next_index]
    best = min(held, key=lambda frame: (abs(frame.stream_ms - ms), -frame.index), default=None)
    return best if best is not None and abs(best.stream_ms - ms) <= reference.tolerance_ms else None


def _segment(ring: Ring, reference: SegmentReference) -> list[Frame]:
    start, end = _place(ring, reference.start), _end(ring, reference)
    if len(ring) and end != "live_edge" and not end.is_behind(start):
        raise StreamFailure("segment_invalid", "the segment ends at or before its start; its end is exclusive")
    stop = ring.next_index if end == "live_edge" else end.index
    frames = ring.frames(start.index, stop)
    if not frames:
        raise StreamFailure("segment_empty", f"no frame that is held lies in the segment; {_what_is_held(ring)}")
    first = frames[0].index
    before_ns = ring.before_ns if first == ring.first_index else ring[first - 1].stream_ns
    return on_grid(frames, before_ns=before_ns, max_fps=reference.max_fps)


def _end(ring: Ring, reference: SegmentReference) -> _Place | Literal["live_edge"]:
    start, end = reference.start, reference.end
    # By the sign alone end_offset_ms=0 is the oldest frame held, which nothing that counts back from the newest can
    # end at; everybody who writes it there means now.
    is_back = start.value < 0 and start.kind != "timestamp_ms"
    if end is None or (is_back and end == Anchor("offset_ms", 0)):
        return "live_edge"
    return _place(ring, end)


def _may_still_come(ring: Ring, reference: FrameReference | SegmentReference) -> bool:
    if isinstance(reference, FrameReference) and reference.anchor.kind == "frame_index":
        return not 0 <= _lifetime_index(ring, reference.anchor) < ring.next_index
    newest = ring.newest
    if newest is None:
        return True
    if isinstance(reference, SegmentReference):
        return _segment_may_grow(ring, reference, newest)
    if _frame_by_time(ring, reference) is not None:
        return False
    ms = _moment_ms(ring, reference.anchor)
    last_ms = ms if reference.direction == "backward" else ms + reference.tolerance_ms
    is_before_the_stream = reference.anchor.kind == "offset_ms" and ms < 0  # the newest moves on until it is not
    return newest.stream_ms < last_ms or is_before_the_stream


def _segment_may_grow(ring: Ring, reference: SegmentReference, newest: Frame) -> bool:
    start, end = _place(ring, reference.start), _end(ring, reference)
    if end == "live_edge":
        return start.index >= ring.next_index
    if not end.is_behind(start):
        return False
    return end.index > ring.next_index if end.is_index else newest.stream_ms < (end.ms or 0)


def _what_is_held(ring: Ring) -> str:
    if not len(ring):
        return "no frame has come yet" if ring.next_index == 0 else f"none of {ring.next_index} frames is held any more"
    oldest, newest = ring[ring.first_index], ring[ring.next_index - 1]
    return f"held are frames {oldest.index} to {newest.index}, {oldest.stream_ms} to {newest.stream_ms} ms"
