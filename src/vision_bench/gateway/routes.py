"""The three routes: /healthz, /chat, /chat/batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from vision_bench.errors import HttpFailure, UpstreamError
from vision_bench.gateway import examples
from vision_bench.gateway.batch import parse_items, run_batch
from vision_bench.gateway.exchange import (
    Refusal,
    exchange_of,
    header,
    read_body,
    refusal_of,
    refuse,
    send_whole,
    start_message,
    unless_client_leaves,
)
from vision_bench.gateway.settings import Settings
from vision_bench.gateway.upstream import Answer, VLLMClient
from vision_bench.wire.chat import error_body
from vision_bench.wire.ndjson import MEDIA_TYPE
from vision_bench.wire.sse import encode_event

router = APIRouter()

# Answer headers that go on to the caller; the rest describes the connection to vLLM, not the answer.
_PASSED_HEADERS = ("Content-Type", "Content-Encoding", "Retry-After")

# nginx and its like gather an answer before they send it on, unless told not to.
_UNBUFFERED = {"X-Accel-Buffering": "no", "Cache-Control": "no-cache"}


@router.get("/healthz", summary="Is the gateway up?", responses=examples.HEALTHZ)
async def healthz() -> Response:
    """200 as soon as the gateway has started. vLLM is never asked."""
    return JSONResponse({"ok": True})


@router.post("/chat", summary="One chat body to vLLM", openapi_extra=examples.CHAT_REQUEST, responses=examples.CHAT)
async def chat(request: Request) -> Response:
    """Passes the body to vLLM's /v1/chat/completions and its answer back, both byte for byte.

    `stream: true` works: events come as vLLM sends them.
    """
    return _Chat(request)


@router.post(
    "/chat/batch",
    summary="Many chat bodies, one NDJSON line each as they finish",
    openapi_extra=examples.BATCH_REQUEST,
    responses=examples.BATCH,
)
async def chat_batch(request: Request) -> Response:
    """Sends every item's body to vLLM and streams one line an item, in the order in which they finish.

    Match lines by `id`. A failed item is a line with `error`; the others go on.
    """
    return _Batch(request)


class _Exchange(Response):
    """A response that is the whole of the request's life: one coroutine holds the permit and knows both ends."""

    def __init__(self, request: Request) -> None:
        self._settings: Settings = request.app.state.settings
        self._client: VLLMClient = request.app.state.vllm
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await read_body(scope, receive, limit_bytes=self._settings.max_body_bytes)
        except Refusal as refusal:
            await refuse(scope, receive, send, refusal, body_unread=True)
            return
        try:
            await unless_client_leaves(receive, self.answer(body, scope, send))
        except Refusal as refusal:
            await refuse(scope, receive, send, refusal)

    async def answer(self, body: list[bytes], scope: Scope, send: Send) -> None:
        """Answer the request, or raise Refusal before anything was sent."""
        raise NotImplementedError

    def authorization(self, scope: Scope) -> str | None:
        """The caller's own header, unless it holds a key of this gateway."""
        return None if self._settings.gateway_api_keys else header(scope, b"authorization")


class _Chat(_Exchange):
    async def answer(self, body: list[bytes], scope: Scope, send: Send) -> None:
        exchange = exchange_of(scope)
        timings = exchange.timings
        exchange.items = 1
        has_started = False
        is_event_stream = False
        try:
            async with self._client.chat(
                body,
                request_id=exchange.request_id,
                timings=timings,
                content_type=header(scope, b"content-type") or "application/json",
                authorization=self.authorization(scope),
            ) as answer:
                is_event_stream = answer.is_event_stream
                if answer.status >= 400:
                    exchange.outcome = HttpFailure.outcome
                held, is_whole = await answer.read_ahead()
                headers = _answer_headers(answer, timings.queue_ms)
                if not is_whole:
                    if is_event_stream:
                        headers |= _UNBUFFERED
                    await send(start_message(answer.status, headers))
                    has_started = True
                    await send({"type": "http.response.body", "body": held, "more_body": True})
                    async for chunk in answer.chunks():
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except UpstreamError as problem:
            refusal = refusal_of(problem)
            if not has_started:
                refusal.headers["Server-Timing"] = _server_timing(timings.queue_ms, timings.upstream_ms)
                raise refusal from problem
            exchange.outcome = refusal.type
            if is_event_stream:
                # The blank line ends an event that was cut in the middle.
                event = encode_event(json.dumps(error_body(str(problem), type=refusal.type, code=refusal.status)))
                await send({"type": "http.response.body", "body": b"\n\n" + event, "more_body": True})
            # Returning without the last message makes the server cut the connection: no caller can take this for
            # a whole answer.
            return
        if has_started:
            await send({"type": "http.response.body", "body": b""})
        else:
            await send_whole(send, answer.status, headers, held)


class _Batch(_Exchange):
    async def answer(self, body: list[bytes], scope: Scope, send: Send) -> None:
        exchange = exchange_of(scope)
        items = parse_items(b"".join(body), max_items=self._settings.max_batch_items)
        exchange.items, exchange.failed = len(items), 0
        headers = {"Content-Type": MEDIA_TYPE, "X-Batch-Total": str(len(items)), **_UNBUFFERED}
        await send(start_message(200, headers))

        async def emit(line: bytes) -> None:
            await send({"type": "http.response.body", "body": line, "more_body": True})

        await run_batch(items, self._client, exchange, emit, authorization=self.authorization(scope))
        await send({"type": "http.response.body", "body": b""})


class DirectRoutes:
    """The two routes that matter, before FastAPI's routing: that takes longer than all our own work on a request.

    They stand in the router too, which documents them, and answers whatever else is asked of their paths.
    """

    _ROUTES: ClassVar = {"/chat": _Chat, "/chat/batch": _Batch}

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            if route := self._ROUTES.get(path):
                exchange_of(scope).route = path
                await route(Request(scope))(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _answer_headers(answer: Answer, queue_ms: float | None) -> dict[str, str]:
    headers = {name: answer.headers[name] for name in _PASSED_HEADERS if name in answer.headers}
    return headers | {"Server-Timing": _server_timing(queue_ms, answer.elapsed_ms())}


def _server_timing(queue_ms: float | None, upstream_ms: float | None) -> str:
    """Only what happened: a call that got no permit has no upstream time."""
    times: Mapping[str, float | None] = {"queue": queue_ms, "upstream": upstream_ms}
    return ", ".join(f"{name};dur={ms:.1f}" for name, ms in times.items() if ms is not None)
