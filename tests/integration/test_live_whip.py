"""Cameras over WebRTC into a running gateway, on 127.0.0.1."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise
from typing import Any

import httpx
import pytest
from aiortc import RTCSessionDescription
from tests.integration.gateway_rig import until
from tests.integration.live_rig import level_of, live_gateway, live_of, new_stream, stream_of
from tests.integration.whip_camera import NumberedTrack, brightness, camera, number_of, offer_of, sending_peer

from vision_bench.live.early import EarlyBuffer

NOWHERE = "http://127.0.0.1:9/v1"
SDP = {"Content-Type": "application/sdp"}


@pytest.mark.parametrize("codec", ["VP8", "H264"])
async def test_a_camera_is_seen(codec: str) -> None:
    """Its frames come in their order and size, an even step apart on the stream's clock, with every server reading; the
    end of the connection is noticed, and the stream keeps its frames."""
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        ring = stream_of(rig, stream["id"]).ring
        async with camera(stream["publish"], fps=10, codec=codec) as source:
            await until(lambda: len(ring) >= 12, within_seconds=60)
            frames = list(ring)
            numbers = [number_of(level_of(frame.jpeg)) for frame in frames]
            steps = [(b - a) % 24 for a, b in pairwise(numbers)]
            assert all(1 <= step <= 20 for step in steps)  # 24 in a row would look like none
            assert {(frame.width, frame.height) for frame in frames} == {(640, 360)}
            for frame in frames:
                readings = [frame.stamps[name].ns for name in ("arrived", "released", "decoded", "stored")]
                assert readings == sorted(readings)
            answer = await httpx.AsyncClient(trust_env=False).delete(source.session_url, headers=source.headers)
            assert answer.status_code == 200
        await until(lambda: live_of(rig).feed_of(stream["id"]) is None)
        assert len(ring) >= 12
        again = await rig.client.delete(source.session_url, headers=source.headers)
        assert again.status_code == 404


async def test_the_last_frame_does_not_wait_for_the_next() -> None:
    """A camera that sends three frames and then none for an hour: all three are there. Stock aiortc gives two."""
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        ring = stream_of(rig, stream["id"]).ring
        async with camera(stream["publish"], fps=5, frames=3):
            await until(lambda: ring.next_index == 3, within_seconds=60)
            assert number_of(level_of(ring[2].jpeg)) == 2


@pytest.mark.parametrize("codec", ["VP8", "H264"])
async def test_lost_and_late_packets_cost_frames_and_no_wrong_picture(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tenth packet is lost and every seventh comes behind its successor: frames go on coming, each as even and
    as bright as one that was sent."""
    add, draw, held = EarlyBuffer.add, random.Random(2), []

    def lossy(self: EarlyBuffer, packet: Any) -> tuple[bool, None]:
        if draw.random() < 0.1:
            return False, None
        if not held and draw.random() < 1 / 7:
            held.append(packet)
            return False, None
        wants, _ = add(self, packet)
        while held:
            wants = add(self, held.pop())[0] or wants
        return wants, None

    monkeypatch.setattr(EarlyBuffer, "add", lossy)
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        ring = stream_of(rig, stream["id"]).ring
        async with camera(stream["publish"], fps=20, codec=codec):
            await until(lambda: ring.next_index >= 30, within_seconds=100)
            levels = [level_of(frame.jpeg) for frame in ring]
            # Brightness in the ring is that of video's levels made full; a torn picture lies between two numbers.
            assert sum(abs(level - brightness(number_of(level))) < 3.5 for level in levels) >= 0.9 * len(levels)


async def test_a_second_camera_takes_over_and_the_end_of_the_stream_ends_it() -> None:
    """One at a time: the first session is gone when the second is there, and a deletion ends the second."""
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        async with camera(stream["publish"]) as first, camera(stream["publish"]) as second:
            await until(lambda: first.peer.connectionState in ("closed", "failed"), within_seconds=60)
            ring = stream_of(rig, stream["id"]).ring
            seen = ring.next_index
            await until(lambda: ring.next_index > seen + 3, within_seconds=60)
            await rig.client.delete(f"/v1beta/streams/{stream['id']}")
            await until(lambda: second.peer.connectionState in ("closed", "failed"), within_seconds=60)


async def test_candidates_may_follow() -> None:
    """An offer without any is answered; what PATCH brings makes the connection. An ICE restart is refused."""
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        publish = stream["publish"]
        headers = {"Authorization": f"Bearer {publish['token']}"}
        track = NumberedTrack(fps=20)
        peer = sending_peer(track)
        try:
            whole = await offer_of(peer)
            found = [line for line in whole.splitlines() if line.startswith("a=candidate:")]
            bare = "\r\n".join(line for line in whole.splitlines() if "candidate" not in line)
            answer = await rig.client.post(publish["url"], content=bare + "\r\n", headers={**headers, **SDP})
            assert answer.status_code == 201
            await peer.setRemoteDescription(RTCSessionDescription(sdp=answer.text, type="answer"))
            session = answer.headers["location"]
            kind = {"Content-Type": "application/trickle-ice-sdpfrag"}
            fragment = "\r\n".join(["a=mid:0", *found, "a=end-of-candidates", ""])
            told = await rig.client.patch(session, content=fragment, headers={**headers, **kind})
            assert told.status_code == 204
            ring = stream_of(rig, stream["id"]).ring
            await until(lambda: ring.next_index >= 3, within_seconds=60)
            restart = await rig.client.patch(
                session, content="a=ice-ufrag:other\r\n" + fragment, headers={**headers, **kind}
            )
            assert (restart.status_code, "ICE restarts" in restart.text) == (422, True)
        finally:
            await peer.close()


async def test_any_sites_page_may_publish_with_a_token() -> None:
    """As RFC 9725 asks: a browser's preflight is answered, and its page may read what came, refusals too."""
    page = {"Origin": "https://studio.example", "Sec-Fetch-Site": "cross-site"}
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        whip = f"/live/whip/{stream['id']}"
        for path, methods in (
            (whip, "POST"),
            (f"{whip}/session", "PATCH, DELETE"),
            (f"/live/view/{stream['id']}", "GET"),
        ):
            asked = {**page, "Access-Control-Request-Method": methods.partition(",")[0]}
            answer = await rig.client.options(path, headers=asked)
            assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*")
            assert answer.headers["access-control-allow-methods"] == methods
            assert "Authorization" in answer.headers["access-control-allow-headers"]
            assert ("accept-post" in answer.headers) == (path == whip)
        refused = await rig.client.post(whip, content=b"v=0\r\n", headers={**SDP, **page})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "*")
        peer = sending_peer(NumberedTrack(fps=20))
        try:
            token = {"Authorization": f"Bearer {stream['publish']['token']}"}
            answer = await rig.client.post(whip, content=await offer_of(peer), headers={**SDP, **page, **token})
            assert answer.status_code == 201, answer.text
            assert "Location" in answer.headers["access-control-expose-headers"]
        finally:
            await peer.close()
        assert "access-control-allow-origin" not in (await rig.client.get("/healthz", headers=page)).headers


async def test_a_session_lies_below_the_public_address() -> None:
    """A proxy serves the gateway below a folder: Location, which the camera takes against that, has it too."""
    async with live_gateway(NOWHERE, live_public_url="https://elsewhere.example/video") as rig:
        stream = await new_stream(rig)
        peer = sending_peer(NumberedTrack(fps=20))
        try:
            token = {"Authorization": f"Bearer {stream['publish']['token']}"}
            path = stream["publish"]["url"].removeprefix("https://elsewhere.example/video")
            answer = await rig.client.post(path, content=await offer_of(peer), headers={**SDP, **token})
            assert answer.headers["location"].startswith(f"/video{path}/")
        finally:
            await peer.close()


NO_OFFERS = [
    (b"", "application/sdp", 400),
    (b"nonsense", "application/sdp", 400),
    (b"v=0\r\n", "application/sdp", 400),
    (b"v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\n", "application/sdp", 400),
    (b"v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n", "application/sdp", 400),
    ("v=0\r\ns=é\r\n".encode(), "application/sdp", 400),
    (b"v=0\r\n" + b"a=x\r\n" * 20_000, "application/sdp", 413),
    (b"v=0\r\n", "text/plain", 415),
]


async def test_an_offer_that_is_none_leaves_nothing() -> None:
    """It is refused with a detail; no feed, no thread and no task stay."""
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        for content, media_type, status in NO_OFFERS:
            headers = {"Authorization": f"Bearer {stream['publish']['token']}", "Content-Type": media_type}
            answer = await rig.client.post(stream["publish"]["url"], content=content, headers=headers)
            assert answer.status_code == status, (content[:60], answer.text)
            assert live_of(rig).feed_of(stream["id"]) is None


async def test_an_aiortc_that_is_not_known_is_the_operators_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """501 with the versions that are known, not a word against the offer."""
    monkeypatch.setattr("vision_bench.live.early._BUFFER", "_another_name")
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        peer = sending_peer(NumberedTrack(fps=5))
        try:
            headers = {"Authorization": f"Bearer {stream['publish']['token']}", **SDP}
            answer = await rig.client.post(stream["publish"]["url"], content=await offer_of(peer), headers=headers)
            assert (answer.status_code, "aiortc>=1.14" in answer.text) == (501, True)
            assert live_of(rig).feed_of(stream["id"]) is None
        finally:
            await peer.close()


async def test_an_api_key_is_no_publish_token() -> None:
    """Neither a key, nor another stream's token, nor none at all may publish."""
    async with live_gateway(NOWHERE, gateway_api_keys="ann") as rig:
        ann = {"Authorization": "Bearer ann"}
        stream, other = await new_stream(rig, headers=ann), await new_stream(rig, headers=ann)
        for headers in ({}, ann, {"Authorization": f"Bearer {other['publish']['token']}"}):
            answer = await rig.client.post(stream["publish"]["url"], content=b"v=0\r\n", headers={**headers, **SDP})
            assert answer.status_code == 401


async def test_a_camera_that_never_connects_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its offer names no place that answers: after a while its session is gone."""
    monkeypatch.setattr("vision_bench.live.whip.CONNECT_SECONDS", 0.3)
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        peer = sending_peer(NumberedTrack(fps=5))
        try:
            headers = {"Authorization": f"Bearer {stream['publish']['token']}", **SDP}
            answer = await rig.client.post(stream["publish"]["url"], content=await offer_of(peer), headers=headers)
            assert answer.status_code == 201
            await until(lambda: live_of(rig).feed_of(stream["id"]) is None, within_seconds=30)
        finally:
            await peer.close()
    await asyncio.sleep(0)
