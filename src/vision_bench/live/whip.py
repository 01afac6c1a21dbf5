"""One camera over WebRTC, as WHIP (RFC 9725) has it: an offer is answered, frames come, candidates may follow.

Needs the extra ``live``.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.sdp import candidate_from_sdp

from vision_bench.errors import OperatorError
from vision_bench.live.decoding import DecoderThread
from vision_bench.live.early import EarlyBuffer, release_early
from vision_bench.live.inlet import Inlet
from vision_bench.live.sdp import MAX_CANDIDATES, BadSdp, NoRestart, checked_offer, read_fragment

CONNECT_SECONDS = 20.0
"""A camera that has not connected by then is let go."""
ANSWER_SECONDS = 10.0


class WhipSession:
    """A camera's connection, from its offer to its end. Everything here runs on the event loop.

    Attributes:
        id: names it in its URL; whoever knows it still needs the stream's token.
        answer: the session description that goes back.
    """

    def __init__(self, inlet: Inlet, *, on_end: Callable[[WhipSession], None] = lambda session: None) -> None:
        self.id = secrets.token_urlsafe(12)
        self.answer = ""
        self._inlet = inlet
        self._on_end = on_end
        self._peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))  # None would ask a public STUN server
        self._decoder: DecoderThread | None = None
        self._buffer: EarlyBuffer | None = None
        self._candidates = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    async def open(self, offer: str, *, addresses: Sequence[str] = ()) -> None:
        """Answer ``offer``. What fails leaves nothing behind.

        Args:
            addresses: this machine's, that the camera is told; none: all but loopback ones.

        Raises:
            BadSdp: an offer that cannot be answered.
            OperatorError: the aiortc that is installed is not one that is known here.
        """
        text = checked_offer(offer)
        self._candidates = text.count("a=candidate:")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._answer(text, addresses)
        except BaseException as problem:
            await self.close()
            # aiortc tells of a stranger's offer by whatever it stumbles over: all of it is the offer's fault.
            if isinstance(problem, Exception) and not isinstance(problem, BadSdp | OperatorError):
                raise BadSdp(f"the offer cannot be answered ({type(problem).__name__})") from problem
            raise
        self._timer = asyncio.get_running_loop().call_later(CONNECT_SECONDS, self._close_unless_connected)

    async def _answer(self, offer: str, addresses: Sequence[str]) -> None:
        peer = self._peer
        peer.on("connectionstatechange", self._state_changed)
        await peer.setRemoteDescription(RTCSessionDescription(sdp=offer, type="offer"))
        video = next((each for each in peer.getTransceivers() if _sends_video(each)), None)
        if video is None:
            raise BadSdp("the offer sends no video in VP8 or H.264")
        for transceiver in peer.getTransceivers():
            # Sound, and further pictures, would be gathered without a reader.
            transceiver.direction = "recvonly" if transceiver is video else "inactive"
            if addresses:
                listen_on(transceiver, addresses)
        self._decoder = DecoderThread(self._inlet, loop=asyncio.get_running_loop())
        self._buffer = release_early(video.receiver, self._decoder, clock=self._inlet.clock)
        await peer.setLocalDescription(await peer.createAnswer())
        self.answer = peer.localDescription.sdp

    async def trickle(self, fragment: str) -> None:
        """Take candidates that were found after the offer.

        Raises:
            BadSdp: too many, or none that can be read.
            NoRestart: the camera wants to begin ICE anew.
        """
        told = read_fragment(fragment)
        if told.ufrag is not None and f"a=ice-ufrag:{told.ufrag}" not in self._peer.remoteDescription.sdp:
            raise NoRestart("ICE restarts are not taken; end this session and begin another")
        self._candidates += len(told.candidates)
        if self._candidates > MAX_CANDIDATES:
            raise BadSdp(f"more than {MAX_CANDIDATES} candidates")
        for mid, line in told.candidates:
            try:
                candidate = candidate_from_sdp(line.removeprefix("candidate:"))
                candidate.sdpMid = mid or None
                if candidate.sdpMid is None:
                    candidate.sdpMLineIndex = 0
                await self._peer.addIceCandidate(candidate)
            except Exception as problem:
                raise BadSdp(f"a candidate cannot be used ({type(problem).__name__})") from problem

    async def close(self) -> None:
        """End it, however far it has come; again, and it is waited for."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._buffer is not None:
            self._buffer.close()
        if self._decoder is not None:
            self._decoder.close()
        with suppress(Exception):  # half an answered offer is closed in whatever state it is
            await self._peer.close()
        self._on_end(self)

    def _state_changed(self) -> None:
        if self._peer.connectionState in ("failed", "closed"):
            self._close_soon()

    def _close_unless_connected(self) -> None:
        if self._peer.connectionState != "connected":
            self._close_soon()

    def _close_soon(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())


def _sends_video(transceiver: Any) -> bool:
    return transceiver.kind == "video" and transceiver.receiver.track is not None


def listen_on(transceiver: Any, addresses: Sequence[str]) -> None:
    """Have aiortc's transceiver listen on ``addresses``: by itself it does on all but loopback ones, and takes no
    list."""
    connection = transceiver.receiver.transport.transport.iceGatherer._connection
    gather = type(connection).get_component_candidates

    async def on_ours(*, component: int, addresses: list[str]) -> Any:
        return await gather(connection, component=component, addresses=list(chosen))

    chosen = tuple(addresses)
    connection.get_component_candidates = on_ours
