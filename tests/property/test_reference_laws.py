"""Laws of reading and printing stream references."""

from __future__ import annotations

from contextlib import suppress
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from vision_bench.live.failures import StreamFailure
from vision_bench.live.references import (
    DIRECTIONS,
    KINDS,
    MAX_WAIT_MS,
    Anchor,
    FrameReference,
    Part,
    SegmentReference,
    parse_reference,
    reference_url,
)

IDS = st.uuids().map(str)
NUMBERS = st.integers(-(10**15) + 1, 10**15 - 1)
ANCHORS = st.builds(Anchor, st.sampled_from(KINDS), NUMBERS)
WAITS = st.integers(0, MAX_WAIT_MS)
FRAMES = st.builds(
    FrameReference, IDS, ANCHORS, st.integers(1, 10**15 - 1), st.sampled_from(DIRECTIONS), WAITS, st.booleans()
)
RATES = st.floats(1e-300, 1000)
SEGMENTS = st.builds(SegmentReference, IDS, ANCHORS, st.none() | ANCHORS, RATES, WAITS)
NAMES = st.sampled_from([*KINDS, "start_offset_ms", "end_frame_index", "max_fps", "clamp", "wait_ms", "direction", "x"])
VALUES = st.one_of(st.integers().map(str), st.floats().map(str), st.sampled_from([*DIRECTIONS, "true", ""]), st.text())


@given(FRAMES | SEGMENTS)
def test_printing_then_reading_gives_the_same_reference(reference: FrameReference | SegmentReference) -> None:
    """No number, word or default is lost on the way through a URL."""
    part: Part = "image_url" if isinstance(reference, FrameReference) else "video_url"
    assert parse_reference(reference_url(reference), part) == reference


@given(
    st.one_of(
        st.text(),
        st.lists(st.tuples(NAMES, VALUES), max_size=4).map(lambda pairs: "&".join(f"{a}={b}" for a, b in pairs)),
    ),
    st.sampled_from(get_args(Part)),
)
def test_any_query_is_read_or_refused(query: str, part: Part) -> None:
    """Whatever is sent, the answer is a reference or a failure with a code; never another exception."""
    with suppress(StreamFailure):
        reference = parse_reference(f"ovs://streams/a?{query}", part)
        assert parse_reference(reference_url(reference), part) == reference
