"""Streams over HTTP: create, look, keep alive, delete, and the token to look at one. Also one of its frames as JPEG."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from typing import Any, cast, get_args

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from vision_bench.gateway.exchange import Refusal, exchange_of, unless_client_leaves
from vision_bench.gateway.live_origins import preflight
from vision_bench.gateway.live_server import VIEW_SECONDS, LiveServer
from vision_bench.gateway.live_shapes import InvalidBody
from vision_bench.live.failures import StreamFailure
from vision_bench.live.pull import Pull
from vision_bench.live.references import FrameReference, parse_reference
from vision_bench.live.registry import Source, Stream
from vision_bench.live.ring import Frame
from vision_bench.live.selection import select_in_time
from vision_bench.live.shapes import created_body, deleted_body, keepalive_body, status_body

BODY_LIMIT_BYTES = 16 * 1024
MAX_URL_LETTERS = 2_048

frames_router = APIRouter()


async def create(request: Request) -> Response:
    """Empty or `{}`: a stream to publish into, with where and by which token. With `source`: one that is pulled."""
    live = live_of(request)
    source = _source(await small_body(request))
    if source is None:
        stream = live.registry.create(live.owner(request))
        return JSONResponse(created_body(stream, publish_body(live, request, stream)), 201)
    kind, url = source
    await live.check_source(kind, url)
    stream = live.registry.create(live.owner(request), source=kind)
    pull = Pull(kind, url, live.inlet(stream), live.pull_rules, on_end=lambda: live.registry.reap(stream.id))
    live.feed(stream, pull)
    try:
        await pull.opened()
    except BaseException:  # also of a caller that leaves: it never heard the stream's id
        live.registry.reap(stream.id)
        raise
    return JSONResponse(created_body(stream, None), 201)


async def status(request: Request, stream_id: str) -> Response:
    """Its lease and its frames. A stream that has ended can be read for a while."""
    live = live_of(request)
    stream = live.registry.find(live.owner(request), stream_id)
    return JSONResponse(status_body(stream, now_ns=live.clock()))


async def keepalive(request: Request, stream_id: str) -> Response:
    """Call it every third of `ttl_seconds`. Gives a fresh publish token."""
    live = live_of(request)
    stream = live.registry.keep_alive(live.owner(request), stream_id)
    publish = None if stream.source else publish_body(live, request, stream)
    return JSONResponse(keepalive_body(stream, publish, now_ns=live.clock()))


async def delete(request: Request, stream_id: str) -> Response:
    """Its frames go at once. Deleting it again succeeds as long as it is remembered."""
    live = live_of(request)
    return JSONResponse(deleted_body(live.registry.delete(live.owner(request), stream_id)))


async def viewer_token(request: Request, stream_id: str) -> Response:
    """It allows `GET` of the URL that comes with it, for five minutes, and nothing else."""
    live = live_of(request)
    stream = live.registry.active(live.owner(request), stream_id)
    view = {
        "url": f"{live.base_url(request)}/live/view/{stream.id}",
        "token": live.tokens.issue("view", stream.id, seconds=VIEW_SECONDS),
        "expires_in_seconds": VIEW_SECONDS,
    }
    return JSONResponse({"view": view})


def streams_router(prefix: str, *, is_alias: bool = False) -> APIRouter:
    """The routes of streams below ``prefix``; those of an alias are not documented again."""
    router = APIRouter(prefix=prefix, include_in_schema=not is_alias)
    one = "/streams/{stream_id}"
    for path, method, route, summary in (
        ("/streams", "POST", create, "A new stream"),
        (one, "GET", status, "A stream's state"),
        (one, "DELETE", delete, "End a stream"),
        (f"{one}/keepalive", "POST", keepalive, "Begin a stream's lease anew"),
        (f"{one}/viewer-token", "POST", viewer_token, "A token to look at a stream's frames"),
    ):
        success = 201 if route is create else 200
        router.add_api_route(path, route, methods=[method], summary=summary, status_code=success)
    return router


@frames_router.options("/live/view/{stream_id}", include_in_schema=False)
async def view_options() -> Response:
    """What the browser of another site's page asks first."""
    return preflight("GET")


@frames_router.get("/live/view/{stream_id}", summary="One frame as JPEG", response_class=Response)
async def view(request: Request, stream_id: str) -> Response:
    """The newest, or the one that the query names as a reference does, such as `?frame_index=7`. Needs a view token."""
    live = live_of(request)
    stream = live.by_token(request, "view", stream_id)
    query = request.scope["query_string"].decode("latin-1") or "frame_index=-1"
    reference = cast(FrameReference, parse_reference(f"stream://streams/{stream.id}?{query}", "image_url"))
    found: list[Frame] = []

    async def look() -> None:
        found.extend(await select_in_time(stream.ring, reference))

    try:
        await unless_client_leaves(request.receive, look())
    except StreamFailure:
        live.registry.by_id(stream.id)  # a stream that ended meanwhile holds nothing: then that is why
        raise
    frame = found[0]
    headers = {
        "X-Frame-Index": str(frame.index),
        "X-Timestamp-Ms": str(frame.stream_ms),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(frame.jpeg, media_type="image/jpeg", headers=headers)


def live_of(request: Request) -> LiveServer:
    """The streams of the application that was asked."""
    live: LiveServer = request.app.state.live
    return live


def publish_body(live: LiveServer, request: Request, stream: Stream) -> dict[str, Any]:
    """Where to send the video of ``stream``, and the token for that: over WebRTC where it is installed, and as JPEG
    frames over a WebSocket."""
    base_url = live.base_url(request)
    push_url = f"ws{base_url.removeprefix('http')}/live/push/{stream.id}"
    token = live.tokens.issue("publish", stream.id, seconds=stream.ttl_seconds)
    if importlib.util.find_spec("aiortc") is None:
        return {"type": "push", "url": push_url, "token": token}
    whip_url = f"{base_url}/live/whip/{stream.id}"
    return {"type": "whip", "url": whip_url, "token": token, "vision_bench": {"push_url": push_url}}


async def small_body(request: Request, *, limit_bytes: int = BODY_LIMIT_BYTES) -> bytes:
    """The request's whole body.

    Raises:
        Refusal: 413, 408.
    """
    pieces, size_bytes = [], 0
    try:
        async with asyncio.timeout(request.app.state.settings.gateway_upload_idle_seconds):
            async for piece in request.stream():
                size_bytes += len(piece)
                if size_bytes > limit_bytes:
                    raise Refusal(413, f"the body is longer than {limit_bytes} bytes", type="too_large")
                pieces.append(piece)
    except TimeoutError:
        raise Refusal(408, "the body did not come in time; send it again", type="upload_timeout") from None
    return b"".join(pieces)


def _source(body: bytes) -> tuple[Source, str] | None:
    """Kind and URL of what is to be pulled; None for a stream to publish into.

    Raises:
        InvalidBody: anything else.
    """
    if not body.strip():
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidBody(((), "is not JSON")) from None
    if not isinstance(value, dict):
        raise InvalidBody(((), "must be an object"))
    source = value.get("source")
    if source is None:
        return None
    if not isinstance(source, dict):
        raise InvalidBody((("source",), "must be an object with type and url"))
    kind, url = source.get("type"), source.get("url")
    if kind not in get_args(Source):
        raise InvalidBody((("source", "type"), f"must be one of {', '.join(get_args(Source))}"))
    if not isinstance(url, str) or not 0 < len(url) <= MAX_URL_LETTERS:
        raise InvalidBody((("source", "url"), f"must be a string of 1 to {MAX_URL_LETTERS} letters"))
    return cast(Source, kind), url


async def answer_failure(request: Request, problem: Exception) -> Response:
    """A stream that cannot be had, as the routes of streams tell it."""
    if not isinstance(problem, StreamFailure):
        raise problem
    exchange_of(request.scope).outcome = problem.code
    headers = {"WWW-Authenticate": "Bearer"} if problem.status == 401 else None
    return JSONResponse(problem.stream_body(), problem.status, headers=headers)


async def answer_invalid(request: Request, problem: Exception) -> Response:
    """A body of the wrong shape."""
    if not isinstance(problem, InvalidBody):
        raise problem
    exchange_of(request.scope).outcome = problem.outcome
    return JSONResponse(problem.body, 422)
