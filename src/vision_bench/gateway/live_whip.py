"""WHIP over HTTP: an offer makes a session, PATCH brings its candidates, DELETE ends it."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.responses import Response

from vision_bench.errors import MissingExtra, OperatorError
from vision_bench.gateway.exchange import Refusal
from vision_bench.gateway.live_origins import preflight
from vision_bench.gateway.live_server import LiveServer
from vision_bench.gateway.live_streams import live_of, small_body
from vision_bench.live.registry import Stream
from vision_bench.live.sdp import SDP_LIMIT_BYTES, BadSdp, NoRestart

try:
    from vision_bench.live.whip import WhipSession
except ImportError:  # the extra is not installed
    WhipSession = None  # type: ignore[assignment,misc]

router = APIRouter()

SDP, FRAGMENT = "application/sdp", "application/trickle-ice-sdpfrag"


@router.post("/live/whip/{stream_id}", summary="A camera's offer (WHIP)", status_code=201, response_class=Response)
async def offer(request: Request, stream_id: str) -> Response:
    """An SDP offer of video, answered with ours. Needs the stream's publish token; what published before is let go."""
    live = live_of(request)
    stream = live.by_token(request, "publish", stream_id)
    if WhipSession is None:
        raise Refusal(501, str(MissingExtra("live", "WebRTC")), type="missing_extra")
    text = await _text(request, SDP)
    session = WhipSession(live.inlet(stream), on_end=lambda ended: live.left(stream.id, ended))
    try:
        await session.open(text, addresses=live.settings.live_ice_addresses)
    except BadSdp as problem:
        raise _bad(problem) from problem
    except OperatorError as problem:
        raise Refusal(501, str(problem), type="missing_extra") from problem
    if not stream.is_active:  # it ended while the answer was made
        await session.close()
        live.by_token(request, "publish", stream_id)
    live.feed(stream, session)
    folder = urlsplit(live.base_url(request)).path  # which a proxy may have taken off the path
    headers = {"Location": f"{folder}/live/whip/{stream.id}/{session.id}"}
    return Response(session.answer, 201, media_type=SDP, headers=headers)


@router.patch("/live/whip/{stream_id}/{session_id}", summary="More candidates (WHIP)", response_class=Response)
async def trickle(request: Request, stream_id: str, session_id: str) -> Response:
    """Candidates that were found after the offer."""
    session = _session(live_of(request), request, stream_id, session_id)
    try:
        await session.trickle(await _text(request, FRAGMENT))
    except NoRestart as problem:
        raise Refusal(422, f"{problem}", type="not_supported") from problem
    except BadSdp as problem:
        raise _bad(problem) from problem
    return Response(status_code=204)


@router.delete("/live/whip/{stream_id}/{session_id}", summary="End a session (WHIP)", response_class=Response)
async def end(request: Request, stream_id: str, session_id: str) -> Response:
    """The camera stops. Its stream stays, with the frames that it holds."""
    await _session(live_of(request), request, stream_id, session_id).close()
    return Response(status_code=200)


@router.options("/live/whip/{stream_id}", include_in_schema=False)
async def endpoint_options() -> Response:
    """What a WHIP client, or the browser that it runs in, may ask first."""
    return preflight("POST", accept_post=SDP)


@router.options("/live/whip/{stream_id}/{session_id}", include_in_schema=False)
async def session_options() -> Response:
    """The same of a session."""
    return preflight("PATCH, DELETE")


def _session(live: LiveServer, request: Request, stream_id: str, session_id: str) -> WhipSession:
    stream: Stream = live.by_token(request, "publish", stream_id)
    session = live.feed_of(stream.id)
    if WhipSession is None or not isinstance(session, WhipSession) or session.id != session_id:
        raise Refusal(404, "no such session; it has ended, or another camera took its place", type="not_found")
    return session


async def _text(request: Request, media_type: str) -> str:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != media_type:
        raise Refusal(415, f"send Content-Type: {media_type}", type="unsupported_media_type")
    body = await small_body(request, limit_bytes=SDP_LIMIT_BYTES)
    try:
        return body.decode("ascii")
    except UnicodeDecodeError:
        raise _bad(BadSdp("not ASCII")) from None


def _bad(problem: BadSdp) -> Refusal:
    return Refusal(400, f"{problem}", type="invalid_request")
