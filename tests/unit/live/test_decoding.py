"""The decoder's thread: bounded, and never without a reason for what is lost."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from vision_bench.live import decoding
from vision_bench.live.decoding import Codec, DecoderThread, Work
from vision_bench.live.inlet import FrameLimits, Inlet
from vision_bench.live.registry import Limits, Registry, Stream
from vision_bench.live.release import EncodedFrame

ENCODERS = {"vp8": "libvpx", "h264": "libx264"}


def encoded(codec: Codec, levels: list[int], *, size: tuple[int, int] = (64, 48)) -> list[EncodedFrame]:
    """One frame for each level of grey, 100 ms apart; the first is a key frame."""
    context: Any = av.CodecContext.create(ENCODERS[codec], "w")
    context.width, context.height = size
    context.pix_fmt, context.time_base = "yuv420p", Fraction(1, 90_000)
    context.options = {"tune": "zerolatency"} if codec == "h264" else {"deadline": "realtime", "lag-in-frames": "0"}
    frames = []
    for number, level in enumerate(levels):
        frame = av.VideoFrame.from_ndarray(np.full((size[1], size[0], 3), level, np.uint8), format="rgb24")
        frame.pts = number * 9_000
        data = b"".join(bytes(packet) for packet in context.encode(frame.reformat(format="yuv420p")))
        at_ns = 10**9 + number * 10**8
        frames.append(EncodedFrame(number * 9_000, data, 1, at_ns, at_ns, is_key=number == 0))
    return frames


class House:
    """A stream with a decoder in front of it."""

    def __init__(self, limits: FrameLimits | None = None) -> None:
        self.stream: Stream = Registry(Limits()).create("ann")
        inlet = Inlet(self.stream, limits or FrameLimits(), clock_id="server")
        self.decoder = DecoderThread(inlet, loop=asyncio.get_running_loop())

    async def until_seen(self, count: int) -> None:
        """Wait until so many frames were stored or dropped."""
        async with asyncio.timeout(30):
            while self.stream.ring.next_index + self.stream.dropped.total() < count:
                await asyncio.sleep(0.005)

    async def closed(self) -> None:
        """Close, and wait for the thread's end."""
        self.decoder.close()
        async with asyncio.timeout(30):
            while self.decoder.is_running:
                await asyncio.sleep(0.005)


def grey(jpeg: bytes) -> float:
    return float(np.asarray(Image.open(io.BytesIO(jpeg)).convert("L")).mean())


@pytest.mark.parametrize("codec", ["vp8", "h264"])
async def test_each_frame_is_stored_in_order(codec: Codec) -> None:
    """As bright as it was, 100 ms apart on the stream's clock, with its readings in their order."""
    house = House()
    levels = [40, 80, 120, 160]
    for count, frame in enumerate(encoded(codec, levels)):
        house.decoder.put(Work(codec, frame, 10**9))
        await house.until_seen(count + 1)
    stored = list(house.stream.ring)
    assert [abs(grey(frame.jpeg) - level) < 6 for frame, level in zip(stored, levels, strict=True)] == [True] * 4
    assert [frame.stream_ms for frame in stored] == [0, 100, 200, 300]
    assert set(stored[0].stamps) == {"arrived", "released", "decoded", "stored"}
    await house.closed()


async def test_damage_is_counted_and_a_key_frame_is_wanted() -> None:
    """What cannot be decoded is dropped with its reason, and the thread lives on."""
    house = House()
    house.decoder.put(Work("h264", EncodedFrame(0, b"\x00\x00\x01nonsense", 1, 1, 1), 1))
    await house.until_seen(1)
    assert (house.stream.dropped, house.decoder.needs_key) == ({"not_decoded": 1}, True)
    house.decoder.put(Work("h264", encoded("h264", [90])[0], 1))
    await house.until_seen(2)
    assert house.stream.ring.next_index == 1
    await house.closed()


async def test_limits_are_asked_before_a_picture_is_encoded() -> None:
    """Too large and too fast have their own reasons."""
    house = House(FrameLimits(pixels=64 * 47))
    house.decoder.put(Work("vp8", encoded("vp8", [90])[0], 1))
    await house.until_seen(1)
    assert house.stream.dropped == {"too_many_pixels": 1}
    await house.closed()


async def test_no_room_is_made_for_a_huge_vp8_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """libvpx makes gigabytes of room for a header of ten bytes that names 16383 x 16383: it never sees one, nor what
    stands on it; the next key frame of a size that may be is decoded."""
    seen: list[bytes] = []

    class Decoder:
        def __init__(self, real: Any) -> None:
            self._real = real

        def decode(self, packet: av.Packet) -> Any:
            seen.append(bytes(packet))
            return self._real.decode(packet)

    make = decoding._decoder
    monkeypatch.setattr(decoding, "_decoder", lambda codec, max_pixels: Decoder(make(codec, max_pixels=max_pixels)))
    house = House()
    key, after = encoded("vp8", [60, 70])
    side = (16_383).to_bytes(2, "little")
    huge = replace(key, data=key.data[:6] + side + side + key.data[10:])
    for count, frame in enumerate((huge, after, key, after)):
        house.decoder.put(Work("vp8", frame, 1))
        await house.until_seen(count + 1)
    assert house.stream.dropped["too_many_pixels"] == 2
    assert seen == [key.data, after.data]
    await house.closed()


async def test_a_decoder_that_falls_behind_drops_to_the_next_key_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its queue full it lets everything go, asks for a key frame, and takes nothing that needs what is gone."""
    monkeypatch.setattr(decoding, "QUEUE_FRAMES", 4)
    house = House()
    frames = encoded("vp8", [50] * 8)
    with house.decoder._change:  # the thread cannot take anything meanwhile
        for frame in frames[:5]:
            house.decoder.put(Work("vp8", frame, 1))
        assert len(house.decoder._waiting) == 0
        assert house.decoder.needs_key
        house.decoder.put(Work("vp8", frames[5], 1))
        assert len(house.decoder._waiting) == 0
        house.decoder.put(Work("vp8", encoded("vp8", [70])[0], 1))
        assert len(house.decoder._waiting) == 1
    assert house.stream.dropped == {"queue_full": 6}
    await house.until_seen(7)
    assert abs(grey(house.stream.ring[0].jpeg) - 70) < 6
    await house.closed()


async def test_pictures_give_way_while_newer_frames_wait() -> None:
    """Of ten frames that come at once all are decoded, and the last ones are stored: the newest is never given up."""
    house = House()
    frames = encoded("vp8", [20 * number for number in range(1, 11)])
    with house.decoder._change:
        for frame in frames:
            house.decoder.put(Work("vp8", frame, 1))
    await house.until_seen(10)
    newest = house.stream.ring.newest
    assert newest is not None
    assert abs(grey(newest.jpeg) - 200) < 6
    assert house.stream.dropped == {"queue_full": 7}
    await house.closed()
