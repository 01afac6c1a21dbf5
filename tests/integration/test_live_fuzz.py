"""Offers and candidates from nobody we know: whatever they hold, they are answered or refused, and leave nothing."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest
from tests.integration.gateway_rig import until
from tests.integration.whip_camera import NumberedTrack, offer_of, sending_peer

from vision_bench.live.inlet import FrameLimits, Inlet
from vision_bench.live.registry import Limits, Registry
from vision_bench.live.sdp import BadSdp
from vision_bench.live.whip import WhipSession

SPLICES = [
    "",
    "\r\n",
    "a=",
    "m=video 9 UDP/TLS/RTP/SAVPF 96",
    "m=audio 0 x 0",
    "a=group:BUNDLE 9",
    "a=rtpmap:96 VP8/0",
    "a=mid:" + "x" * 300,
    "a=ssrc:99999999999999 cname:x",
    "a=fingerprint:sha-256 00",
    "a=setup:none",
    "a=rtcp-mux",
    "a=candidate:1 1 udp 1 ::1 1 typ host",
    "a=ice-ufrag:",
    "a=extmap:99999 x",
    "a=fmtp:96 x=y;;=",
    "c=IN IP6 ::",
]


def broken(offer: str, draw: random.Random) -> str:
    """``offer`` with lines lost, doubled, swapped, cut, replaced or put in, and letters changed."""
    lines = offer.split("\r\n")
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(lines))
        match draw.randrange(6):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, lines[at])
            case 2:
                other = draw.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = lines[at][: draw.randint(0, len(lines[at]))]
            case 4:
                lines.insert(at, draw.choice(SPLICES))
            case _:
                line = lines[at] or "a"
                place = draw.randrange(len(line))
                lines[at] = line[:place] + chr(draw.randrange(1, 127)) + line[place + 1 :]
        lines = lines or [""]
    return "\r\n".join(lines)


def session() -> WhipSession:
    """One whose frames go into a stream of its own."""
    return WhipSession(Inlet(Registry(Limits()).create("ann"), FrameLimits(), clock_id="server"))


def live_threads() -> int:
    return sum(thread.name.startswith("live-decoder") for thread in threading.enumerate())


async def test_broken_offers_are_answered_or_refused() -> None:
    """A hundred of them: no other error, no thread of ours and no task stays behind."""
    peer = sending_peer(NumberedTrack(fps=5))
    whole = await offer_of(peer)
    await peer.close()
    await asyncio.sleep(0)
    tasks = len(asyncio.all_tasks())
    draw = random.Random(3)
    answered = refused = 0
    for _ in range(100):
        camera = session()
        try:
            await camera.open(broken(whole, draw), addresses=["127.0.0.1"])
            answered += 1
        except BadSdp:
            refused += 1
        await camera.close()
    assert (answered > 10, refused > 10) == (True, True)
    await until(lambda: live_threads() == 0)
    await until(lambda: len(asyncio.all_tasks()) <= tasks)


@pytest.mark.parametrize("seed", range(3))
async def test_broken_candidates_are_taken_or_refused(seed: int) -> None:
    """Fragments of every shape: the session lives on, and takes no more candidates than it may."""
    peer = sending_peer(NumberedTrack(fps=5))
    whole = await offer_of(peer)
    draw = random.Random(seed)
    camera = session()
    try:
        await camera.open(whole, addresses=["127.0.0.1"])
        fragment = "a=mid:0\r\na=candidate:1 1 udp 2130706431 127.0.0.1 9 typ host\r\na=end-of-candidates\r\n"
        for _ in range(50):
            try:
                await camera.trickle(broken(fragment, draw))
            except BadSdp:
                continue
    finally:
        await camera.close()
        await peer.close()
    await until(lambda: live_threads() == 0)
