"""References in chat bodies: found where vLLM reads media, replaced by pictures."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest
from PIL import Image

from vision_bench.live.failures import StreamFailure
from vision_bench.live.jpeg import jpeg_size
from vision_bench.live.questions import MAX_REFERENCES, encoded_bytes, may_ask, put_pictures, references
from vision_bench.live.ring import Frame

URL = "stream://streams/cam?frame_index=-1"


def _body(*parts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": "short"}, {"role": "user", "content": list(parts)}]}


def _frame(data: bytes) -> Frame:
    return Frame(0, 0, 0, data, 8, 8)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": URL}},
        {"type": "image_url", "image_url": URL},
        {"image_url": {"url": URL, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": URL.replace("stream", "OVS", 1)}},
    ],
)
def test_every_form_of_a_part_is_found_and_filled(part: dict[str, Any]) -> None:
    """Bare and in an object, with and without a type, in either scheme; what stands beside it stays."""
    body = _body({"type": "text", "text": "x"}, part)
    slots = references(body)
    assert len(slots) == 1
    assert put_pictures(slots, [[_frame(b"jpeg")]]) == 4
    assert "data:image/jpeg;base64,anBlZw==" in json.dumps(body)
    assert "streams/cam" not in json.dumps(body)


def test_a_segment_is_a_list_of_frames() -> None:
    """Its frames are joined by commas, as vLLM takes a video of JPEGs; the length was known before."""
    body = _body({"type": "video_url", "video_url": {"url": "stream://streams/cam?start_frame_index=0"}})
    frames = [_frame(b"one"), _frame(b"two")]
    put_pictures(references(body), [frames])
    url = body["messages"][1]["content"][0]["video_url"]["url"]
    assert url == "data:video/jpeg;base64,b25l,dHdv"
    assert len(url) <= encoded_bytes(frames) + 30


def test_other_urls_are_left_alone() -> None:
    """data:, https and anything that is no string is vLLM's; and a body of any shape raises nothing."""
    remote = {"type": "image_url", "image_url": {"url": "https://x/y?stream://streams/cam"}}
    body = _body(remote, {"image_url": 7}, "text")
    assert references(body) == []
    for odd in ({}, {"messages": None}, {"messages": [1, {"content": 2}, {"content": [[], None]}]}):
        assert references(odd) == []


def test_too_many_references_are_refused() -> None:
    """One more than a question may have."""
    part = {"type": "image_url", "image_url": {"url": URL}}
    assert len(references(_body(*[part] * MAX_REFERENCES))) == MAX_REFERENCES
    with pytest.raises(StreamFailure, match="16 are allowed"):
        references(_body(*[part] * (MAX_REFERENCES + 1)))


@pytest.mark.parametrize(
    ("body", "may"),
    [
        (b'{"url": "stream://streams/a"}', True),
        (b'{"url": "OvS://streams/a"}', True),
        (b'{"url": "\\u0073tream://streams/a"}', True),
        (b'{"thread_id": "x"}', True),
        (b'{"stream": true, "url": "data:image/jpeg;base64,' + b"A" * 100_000 + b'"}', False),
        (b'{"messages": [{"role": "user", "content": "a stream of ovs"}]}', False),
        (b"", False),
    ],
)
def test_what_may_ask_is_seen_without_parsing(body: bytes, may: bool) -> None:
    """Any spelling of the schemes that JSON knows is seen; ``"stream": true`` and pictures are not taken for one."""
    assert may_ask(body) is may


def _jpeg(width: int, height: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height)).save(out, "JPEG")
    return out.getvalue()


def _header(data: bytes) -> bytes:
    """Of a JPEG, what tells its size."""
    at = data.index(b"\xff\xc0")
    return data[at : at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")]


def test_frames_of_another_size_get_that_of_the_newest() -> None:
    """A video has one size."""
    body = _body({"type": "video_url", "video_url": {"url": "stream://streams/cam?start_frame_index=0"}})
    frames = [Frame(0, 0, 0, _jpeg(32, 24), 32, 24), Frame(1, 1, 1, _jpeg(16, 8), 16, 8)]
    put_pictures(references(body), [frames])
    url = body["messages"][1]["content"][0]["video_url"]["url"]
    sizes = [jpeg_size(base64.b64decode(text)) for text in url.partition("base64,")[2].split(",")]
    assert sizes == [(16, 8), (16, 8)]


@pytest.mark.parametrize(
    "damaged",
    [
        _jpeg(32, 24)[:200] + b"\xff\xd9",  # cut in the middle
        b"\xff\xd8" + _header(_jpeg(32, 24)) + b"\xff\xd9",  # a size and nothing else
        # A second size, which the decoder would make room for: 4 thousand million pixels.
        b"\xff\xd8" + _header(_jpeg(32, 24)) + _header(_jpeg(65_000, 1)).replace(b"\x00\x01", b"\xfd\xe8", 1)
        + _jpeg(32, 24)[2:],
        b"\xff\xd8" + _header(_jpeg(32, 24)) + _jpeg(9_000, 1)[2:],
    ],
)  # fmt: skip
def test_a_damaged_frame_of_another_size_is_the_questions_failure(damaged: bytes) -> None:
    """Pushed pictures are measured, not decoded; one that has to be is refused with its index, whatever is in it."""
    assert jpeg_size(damaged) == (32, 24)
    body = _body({"type": "video_url", "video_url": {"url": "stream://streams/cam?start_frame_index=0"}})
    frames = [Frame(7, 0, 0, damaged, 32, 24), Frame(8, 1, 1, _jpeg(16, 8), 16, 8)]
    with pytest.raises(StreamFailure, match="frame 7 is damaged") as told:
        put_pictures(references(body), [frames])
    assert told.value.code == "segment_invalid"
