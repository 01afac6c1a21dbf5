"""A server for generated video that speaks ``WS /v1/realtime/video`` of vLLM-Omni 0.30, without a GPU."""

from __future__ import annotations

import hmac
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from vision_bench.engine.realtime.connection import Connection
from vision_bench.engine.realtime.engine import RealtimeEngine
from vision_bench.engine.realtime.settings import RealtimeSettings
from vision_bench.engine.realtime.truth import TruthLog
from vision_bench.wire.ndjson import MEDIA_TYPE as NDJSON

PATH = "/v1/realtime/video"


def create_realtime_engine(settings: RealtimeSettings | None = None) -> Starlette:
    """The ASGI application. It wants a server that drops a WebSocket when its handler returns, as uvicorn does."""
    settings = settings or RealtimeSettings()
    engine = RealtimeEngine(settings)
    truth = TruthLog(settings.truth_sessions)
    created = int(time.time())

    async def video(socket: WebSocket) -> None:
        await Connection(socket, engine, truth).serve()

    async def models(_: Request) -> Response:
        cards = [
            {"id": name, "object": "model", "created": created, "owned_by": "vision-bench"}
            for name in settings.served_model_names
        ]
        return JSONResponse({"object": "list", "data": cards})

    async def health(_: Request) -> Response:
        return Response()

    async def truth_page(_: Request) -> Response:
        return Response(b"".join(truth.lines()), media_type=NDJSON)

    async def forget_truth(_: Request) -> Response:
        truth.clear()
        return Response()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await engine.close()

    return Starlette(
        routes=[
            WebSocketRoute(PATH, video),
            Route("/v1/models", models),
            Route("/health", health),
            Route("/truth", truth_page, methods=["GET"]),
            Route("/truth", forget_truth, methods=["DELETE"]),
        ],
        middleware=[Middleware(_Key, key=settings.api_key)],
        lifespan=lifespan,
    )


class _Key:
    """Guards every /v1 path; a WebSocket without the key fails in its handshake."""

    def __init__(self, app: ASGIApp, *, key: str | None) -> None:
        self._app = app
        self._key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or not scope["path"].startswith("/v1") or self._may_pass(scope):
            await self._app(scope, receive, send)
            return
        refusal = JSONResponse({"error": "Unauthorized"}, 401)
        if scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(refusal)
        else:
            await refusal(scope, receive, send)

    def _may_pass(self, scope: Scope) -> bool:
        sent = HTTPConnection(scope).headers.get("authorization", "")
        return self._key is None or hmac.compare_digest(sent.encode(), f"Bearer {self._key}".encode())
