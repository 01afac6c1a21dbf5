"""Our buffer where aiortc's stood: what it takes off packets, and when it asks for a key frame."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from vision_bench.errors import OperatorError
from vision_bench.live.decoding import Work
from vision_bench.live.early import KEY_INTERVAL_NS, EarlyBuffer, release_early

VP8, OPUS = SimpleNamespace(mimeType="video/VP8"), SimpleNamespace(mimeType="audio/opus")


class _Decoder:
    def __init__(self) -> None:
        self.needs_key = False
        self.works: list[Work] = []

    def put(self, work: Work) -> None:
        self.works.append(work)


class _Receiver:
    def __init__(self) -> None:
        self._RTCRtpReceiver__jitter_buffer: Any = object()
        self._RTCRtpReceiver__codecs = {96: VP8, 111: OPUS}
        self.asked: list[int] = []

    async def _send_rtcp_pli(self, ssrc: int) -> None:
        self.asked.append(ssrc)


class _House:
    def __init__(self) -> None:
        self.now_ns = 10**12
        self.decoder: Any = _Decoder()
        self.receiver = _Receiver()
        self.buffer: EarlyBuffer = release_early(self.receiver, self.decoder, clock=lambda: self.now_ns)

    def packet(self, sequence: int, *, timestamp: int = 0, marker: bool = True, starts: bool = True) -> bool:
        payload = (b"\x10" if starts else b"\x00") + b"\x00data"
        packet = SimpleNamespace(
            payload_type=96,
            payload=payload,
            _data=payload[1:],
            sequence_number=sequence,
            timestamp=timestamp,
            marker=int(marker),
            ssrc=7,
        )
        wants, frame = self.buffer.add(packet)
        assert frame is None
        return wants


async def test_a_frame_is_handed_on_with_its_last_packet() -> None:
    """Nothing goes the old way; the decoder has the frame before the next one's first packet."""
    house = _House()
    assert house.receiver._RTCRtpReceiver__jitter_buffer is house.buffer
    assert not house.packet(1, marker=False)
    assert house.decoder.works == []
    house.packet(2, starts=False)
    assert [work.frame.data for work in house.decoder.works] == [b"\x00data\x00data"]
    assert house.decoder.works[0].codec == "vp8"


async def test_a_hole_is_given_up_in_time_and_a_key_frame_asked_for() -> None:
    """Without any further packet: the timer lets the next whole frame go on, and asks the sender."""
    house = _House()
    house.packet(1)
    house.packet(3, timestamp=3_000)
    assert len(house.decoder.works) == 1
    house.now_ns += 10**9
    async with asyncio.timeout(10):
        while not house.receiver.asked:
            await asyncio.sleep(0.01)
    assert house.receiver.asked == [7]
    assert [work.frame.timestamp for work in house.decoder.works] == [0, 3_000]
    house.buffer.close()


async def test_key_frames_are_not_asked_for_with_every_packet() -> None:
    """Once, and again only when there was time for one to come."""
    house = _House()
    house.decoder.needs_key = True
    assert house.packet(1)
    house.decoder.needs_key = True
    house.now_ns += KEY_INTERVAL_NS - 1
    assert not house.packet(2, timestamp=1)
    house.now_ns += 1
    assert house.packet(3, timestamp=2)


async def test_what_is_no_video_passes_by() -> None:
    """A payload of another codec goes nowhere."""
    house = _House()
    assert house.buffer.add(SimpleNamespace(payload_type=111)) == (False, None)


def test_another_aiortc_is_named() -> None:
    """One that is built in another way is refused with the versions that are known."""
    with pytest.raises(OperatorError, match=r"aiortc>=1\.14"):
        release_early(SimpleNamespace(), _Decoder(), clock=lambda: 0)  # type: ignore[arg-type]
