"""Messages of a connection that pushes frames."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from PIL import Image

from vision_bench.live.inlet import FrameLimits, Inlet
from vision_bench.live.push import BadMessage, PushReader
from vision_bench.live.registry import Limits, Registry, Stream

MS = 1_000_000


def _jpeg(width: int = 16, height: int = 16) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (9, 99, 9)).save(out, "JPEG")
    return out.getvalue()


class _House:
    def __init__(self) -> None:
        self.now_ns = 10**9
        registry = Registry(Limits(), clock=lambda: self.now_ns, wall_clock=lambda: 0)
        self.stream: Stream = registry.create("ann")
        limits = FrameLimits(frame_bytes=4_000, pixels=400, fps=30)
        self.reader = PushReader(Inlet(self.stream, limits, clock_id="server-1", clock=lambda: self.now_ns))

    def picture(self, data: bytes, **about: Any) -> dict[str, Any]:
        if about:
            assert self.reader.text(json.dumps(about)) is None
        return self.reader.picture(data)


def test_a_picture_is_answered_with_its_index() -> None:
    """Indices count up; without a timestamp the stream's clock runs on the arrivals."""
    house = _House()
    assert house.picture(_jpeg()) == {"type": "stored", "frame_index": 0, "timestamp_ms": 0}
    house.now_ns += 250 * MS
    assert house.picture(_jpeg()) == {"type": "stored", "frame_index": 1, "timestamp_ms": 250}


def test_timestamps_keep_the_pace_that_the_network_did_not() -> None:
    """Pictures seen 100 ms apart that come together after a delay are 100 ms apart on the stream's clock."""
    house = _House()
    times = []
    for count, late_ms in enumerate((0, 100, 0, 0)):
        house.now_ns = 10**9 + (100 * count + late_ms) * MS + count
        times.append(house.picture(_jpeg(), timestamp_ms=5_000 + 100 * count)["timestamp_ms"])
    assert times == [0, 100, 200, 300]


def test_every_reason_has_its_name_and_count() -> None:
    """No JPEG, too many bytes, too many pixels, too fast: each named in the answer and counted in the stream."""
    house = _House()
    assert house.picture(b"GIF89a") == {"type": "dropped", "reason": "not_a_jpeg"}
    assert house.picture(b"\xff" * 5_000) == {"type": "dropped", "reason": "too_many_bytes"}
    assert house.picture(_jpeg(40, 40)) == {"type": "dropped", "reason": "too_many_pixels"}
    answers = []
    for _ in range(40):
        house.now_ns += MS
        answers.append(house.picture(_jpeg()))
    assert {"type": "dropped", "reason": "too_fast"} in answers
    assert set(house.stream.dropped) == {"not_a_jpeg", "too_many_bytes", "too_many_pixels", "too_fast"}


def test_readings_are_kept_under_the_publishers_clock() -> None:
    """captured and sent carry its name, arrived and stored the server's; a name that looks like a server's is none."""
    house = _House()
    house.picture(_jpeg(), clock="cam", captured_ns=5, sent_ns=7)
    frame = house.stream.ring.newest
    assert frame is not None
    assert {name: (stamp.clock, stamp.ns) for name, stamp in frame.stamps.items()} == {
        "captured": ("cam", 5),
        "sent": ("cam", 7),
        "arrived": ("server-1", 10**9),
        "stored": ("server-1", 10**9),
    }
    house.now_ns += 100 * MS
    house.picture(_jpeg(), clock="server-1", captured_ns=5)
    assert set(house.stream.ring[1].stamps) == {"arrived", "stored"}


def test_clocks_are_exchanged_and_the_offset_is_remembered() -> None:
    """A clock message is answered with this clock's readings; the offset that the source reckons is the stream's."""
    house = _House()
    answer = house.reader.text('{"type": "clock", "asked_ns": 3}')
    assert answer == {
        "type": "clock",
        "clock": "server-1",
        "asked_ns": 3,
        "received_ns": 10**9,
        "replied_ns": 10**9,
    }
    house.reader.text('{"type": "offset", "clock": "cam", "offset_ns": -4, "bound_ns": 2}')
    offset = house.stream.offset
    assert offset is not None
    assert (offset.behind, offset.ahead, offset.offset_ns, offset.bound_ns) == ("cam", "server-1", -4, 2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[]",
        '{"type": "stop"}',
        '{"type": "clock"}',
        '{"type": "clock", "asked_ns": "3"}',
        '{"type": "offset", "clock": "cam", "offset_ns": 1}',
        '{"type": "offset", "clock": "cam", "offset_ns": 1, "bound_ns": -1}',
        '{"type": "offset", "offset_ns": 1, "bound_ns": 1}',
        '{"x": "' + "y" * 3_000 + '"}',
        "[" * 2_000,
    ],
)
def test_text_without_meaning_ends_the_connection(text: str) -> None:
    """It is refused with a reason and changes nothing."""
    house = _House()
    with pytest.raises(BadMessage):
        house.reader.text(text)
    assert house.stream.offset is None


@pytest.mark.parametrize("about", [{"timestamp_ms": "x"}, {"timestamp_ms": -1}, {"timestamp_ms": 1e300}, {"clock": 7}])
def test_words_about_a_picture_that_are_wrong_are_left_out(about: dict[str, Any]) -> None:
    """The picture is taken all the same, by its arrival."""
    house = _House()
    assert house.picture(_jpeg(), **about)["type"] == "stored"
