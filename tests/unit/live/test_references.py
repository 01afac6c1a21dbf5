"""Frame and segment references: what is read, what is refused and with which answer."""

from __future__ import annotations

import pytest

from vision_bench.live.failures import StreamFailure
from vision_bench.live.references import (
    MAX_WAIT_MS,
    Anchor,
    FrameReference,
    SegmentReference,
    is_reference,
    parse_reference,
    reference_url,
)

ID = "2ea5a604-d225-4cd2-82ac-b907cb0b4f63"
NEWEST = Anchor("frame_index", -1)

FRAMES = [
    ("frame_index=-1", FrameReference(ID, NEWEST)),
    ("frame_index=0", FrameReference(ID, Anchor("frame_index", 0))),
    ("timestamp_ms=12000&tolerance_ms=250", FrameReference(ID, Anchor("timestamp_ms", 12000), tolerance_ms=250)),
    ("offset_ms=-5000&direction=backward", FrameReference(ID, Anchor("offset_ms", -5000), direction="backward")),
    ("direction=forward&offset_ms=0", FrameReference(ID, Anchor("offset_ms", 0), direction="forward")),
    ("frame_index=5&tolerance_ms=9&direction=forward", FrameReference(ID, Anchor("frame_index", 5), 9, "forward")),
    ("frame_index=9&wait_ms=500&clamp=true", FrameReference(ID, Anchor("frame_index", 9), wait_ms=500, clamp=True)),
    ("frame_index=9&clamp=false&wait_ms=0", FrameReference(ID, Anchor("frame_index", 9))),
    ("frame%5Findex=%2D1", FrameReference(ID, NEWEST)),
]

SEGMENTS = [
    ("start_offset_ms=-5000", SegmentReference(ID, Anchor("offset_ms", -5000))),
    ("start_frame_index=-30&max_fps=2", SegmentReference(ID, Anchor("frame_index", -30), max_fps=2.0)),
    (
        "start_timestamp_ms=10000&end_timestamp_ms=15000&max_fps=4.5",
        SegmentReference(ID, Anchor("timestamp_ms", 10000), Anchor("timestamp_ms", 15000), 4.5),
    ),
    (
        "start_offset_ms=-30000&end_frame_index=523",
        SegmentReference(ID, Anchor("offset_ms", -30000), Anchor("frame_index", 523)),
    ),
    (
        "end_offset_ms=0&start_offset_ms=-10000&wait_ms=60000",
        SegmentReference(ID, Anchor("offset_ms", -10000), Anchor("offset_ms", 0), wait_ms=60000),
    ),
    ("start_frame_index=0&max_fps=.5", SegmentReference(ID, Anchor("frame_index", 0), max_fps=0.5)),
    ("start_frame_index=0&max_fps=1e-3", SegmentReference(ID, Anchor("frame_index", 0), max_fps=0.001)),
]


@pytest.mark.parametrize("scheme", ["stream", "ovs", "STREAM", "Ovs"])
@pytest.mark.parametrize(("query", "expected"), FRAMES)
def test_a_frame_is_read(scheme: str, query: str, expected: FrameReference) -> None:
    """One anchor, the documented defaults (100 ms, nearest), both schemes, any order of parameters."""
    url = f"{scheme}://streams/{ID}?{query}"
    assert is_reference(url)
    assert parse_reference(url, "image_url") == expected


@pytest.mark.parametrize(("query", "expected"), SEGMENTS)
def test_a_segment_is_read(query: str, expected: SegmentReference) -> None:
    """A start of any kind, an end of the same or another kind or none, one frame a second unless it says otherwise."""
    assert parse_reference(f"ovs://streams/{ID}?{query}", "video_url") == expected


@pytest.mark.parametrize("expected", [reference for _, reference in [*FRAMES, *SEGMENTS]])
def test_a_printed_reference_reads_back(expected: FrameReference | SegmentReference) -> None:
    """Printing leaves out defaults and nothing else."""
    part = "image_url" if isinstance(expected, FrameReference) else "video_url"
    assert parse_reference(reference_url(expected), part) == expected


def test_the_shortest_form_is_printed() -> None:
    """The newest frame is the URL that people write by hand."""
    assert reference_url(FrameReference(ID, NEWEST)) == f"stream://streams/{ID}?frame_index=-1"


@pytest.mark.parametrize(
    "url",
    [
        "stream://streams/",
        f"stream://streams/{ID}",
        f"stream://streams/{ID}/frames?frame_index=-1",
        f"stream://Streams/../{ID}?frame_index=-1",
        f"stream://user@streams/{ID}?frame_index=-1",
        f"stream:/streams/{ID}?frame_index=-1",
        f"stream:streams/{ID}?frame_index=-1",
        f"ovs://stream/{ID}?frame_index=-1",
        f"ovs://streams/{ID}?frame_index=-1#now",
        f"ovs://streams/{ID}\n?frame_index=-1",
        f"ovs://streams/{ID} ?frame_index=-1",
        f"ovs://streams/%2e%2e?{ID}",
        f"ovs://streams/{'a' * 65}?frame_index=-1",
        f"ovs://streams/{ID}?frame_index={'0' * 2048}",
    ],
)
def test_another_shape_is_no_reference(url: str) -> None:
    """What has the scheme but not the shape is a 400 of its own, and its message stays short."""
    assert is_reference(url)
    with pytest.raises(StreamFailure) as caught:
        parse_reference(url, "image_url")
    assert (caught.value.code, caught.value.status) == ("stream_url_invalid", 400)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "url", ["https://streams/x?frame_index=-1", "data:image/jpeg;base64,AA", "streams", " ovs:", ""]
)
def test_other_urls_are_nobody_s_business_here(url: str) -> None:
    """Only the two schemes are resolved; everything else goes on as it is."""
    assert not is_reference(url)


BAD_FRAMES = [
    ("", "name one frame"),
    ("tolerance_ms=5", "name one frame"),
    ("frame_index=1&timestamp_ms=2", "frame_index and timestamp_ms contradict"),
    ("frame_index=1&timestamp_ms=2&offset_ms=3", "timestamp_ms and offset_ms contradict"),
    ("frame_index=1&frame_index=1", "given twice"),
    ("frame_index=1&frame%5Findex=2", "given twice"),
    ("frame_index", "name=value"),
    ("frame_index=1&", "name=value"),
    ("=1", "name=value"),
    ("frame_index=", "whole number"),
    ("frame_index=1.0", "whole number"),
    ("frame_index=+1", "whole number"),
    ("frame_index=1_000", "whole number"),
    ("frame_index=١", "whole number"),
    ("frame_index=1%0A", "whole number"),
    ("frame_index=latest", "whole number"),
    (f"frame_index={'9' * 16}", "whole number"),
    ("offset_ms=-1&tolerance_ms=0", "above 0"),
    ("offset_ms=-1&tolerance_ms=-5", "above 0"),
    ("frame_index=1&tolerance_ms=x", "above 0"),
    ("offset_ms=-1&direction=Nearest", "one of nearest, forward, backward"),
    ("frame_index=-1&wait_ms=-1", "from 0 to"),
    (f"frame_index=-1&wait_ms={MAX_WAIT_MS + 1}", "from 0 to"),
    ("frame_index=-1&clamp=1", "one of true, false"),
    ("frame_index=-1&max_fps=1", "no parameter of image_url"),
    ("start_offset_ms=-5000", "no parameter of image_url"),
    ("frame_index=-1&amp;clamp=true", "'amp;clamp' is no parameter"),
    ("Frame_Index=-1", "no parameter of image_url"),
]

BAD_SEGMENTS = [
    ("", "a segment needs"),
    ("end_offset_ms=0", "a segment needs"),
    ("frame_index=-1", "no parameter of video_url"),
    ("start_offset_ms=-1&start_frame_index=0", "start_frame_index and start_offset_ms contradict"),
    ("start_offset_ms=-1&end_offset_ms=0&end_frame_index=3", "end_frame_index and end_offset_ms contradict"),
    ("start_offset_ms=-1&start_offset_ms=-1", "given twice"),
    ("start_offset_ms=-1&max_fps=0", "above 0"),
    ("start_offset_ms=-1&max_fps=-1", "above 0"),
    ("start_offset_ms=-1&max_fps=nan", "above 0"),
    ("start_offset_ms=-1&max_fps=inf", "above 0"),
    ("start_offset_ms=-1&max_fps=1e400", "above 0"),
    ("start_offset_ms=-1&max_fps=1e-400", "above 0"),
    ("start_offset_ms=-1&max_fps=", "above 0"),
    ("start_offset_ms=-1&tolerance_ms=5", "no parameter of video_url"),
    ("start_offset_ms=-1&clamp=true", "clamp is for image_url"),
]


@pytest.mark.parametrize(
    ("part", "query", "reason"),
    [*(("image_url", *row) for row in BAD_FRAMES), *(("video_url", *row) for row in BAD_SEGMENTS)],
)
def test_a_bad_query_is_refused(part: str, query: str, reason: str) -> None:
    """Missing, repeated, unknown and malformed parameters are 400 query_param_invalid, with the reason."""
    with pytest.raises(StreamFailure) as caught:
        parse_reference(f"stream://streams/{ID}?{query}", part)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.status) == ("query_param_invalid", 400)
    assert reason in str(caught.value)
