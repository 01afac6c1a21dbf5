"""The gateway as one ASGI application."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from vision_bench.gateway.admission import Admission
from vision_bench.gateway.docs_pages import add_docs_pages
from vision_bench.gateway.exchange import ClientLeft, Refusal, exchange_of
from vision_bench.gateway.exposition import Exposition, GatewayCollector
from vision_bench.gateway.fleet import Fleet
from vision_bench.gateway.keys import ApiKeys
from vision_bench.gateway.media_policy import MediaPolicy
from vision_bench.gateway.metrics import Metrics
from vision_bench.gateway.middleware import RequestLog, our_failure, shown_path
from vision_bench.gateway.openai_routes import router as openai_router
from vision_bench.gateway.operator_routes import router as operator_router
from vision_bench.gateway.otlp import wanted_endpoint
from vision_bench.gateway.page_origins import OwnPages
from vision_bench.gateway.page_routes import add_page
from vision_bench.gateway.protocol import LIMITS_KEY, ConnectionLimits
from vision_bench.gateway.readiness import Readiness
from vision_bench.gateway.room import Buffer, Pace
from vision_bench.gateway.routes import DirectRoutes, router
from vision_bench.gateway.settings import Settings, load_settings
from vision_bench.gateway.transport import HttpTransport, Transport
from vision_bench.gateway.upstream import VLLMClient

if TYPE_CHECKING:  # needs the extra
    from vision_bench.gateway.spans import Spans

CONNECT_TIMEOUT_SECONDS = 10.0

_DESCRIPTION = """\
A thin gateway in front of vLLM's `/v1/chat/completions`. Bodies and answers pass as they are; what it adds are limits
on calls and callers, batches that stream one line an item, and what operators need. Every answer carries
`X-Request-Id` and `Server-Timing`."""


class _Gateway(FastAPI):
    """FastAPI for the documentation and the small routes, behind a front of our own that serves the others itself.

    FastAPI's and Starlette's layers around a route take longer than all our own work on a request.
    """

    front: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.front(scope, receive, send)

    async def behind(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What FastAPI does by itself, and HEAD wherever there is a GET, for probes; the server leaves its body out."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await super().__call__(scope, receive, send)
            return
        asked = {**scope, "method": "GET"}
        try:
            await super().__call__(asked, receive, send)
        finally:
            scope["route"] = asked.get("route")  # for the log and the counts


def create_app(
    settings: Settings | None = None, *, transport: Transport | None = None, spans: Spans | None = None
) -> FastAPI:
    """The application that uvicorn serves.

    Args:
        settings: read from the environment and ``.env`` when not given.
        transport: stands in for the sockets to vLLM in tests.
        spans: made as the settings and OpenTelemetry's variables say when not given.

    Raises:
        InvalidSettings: a setting is missing or wrong.
        MissingExtra: spans are wanted and OpenTelemetry is not installed.
    """
    chosen = settings or load_settings()
    spans = spans or _spans(chosen)
    app = _Gateway(
        title="vision-bench gateway",
        version=version("vision-bench"),
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        # FastAPI's own spans, counts and records of failures: of the small routes alone, with paths and messages.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        redirect_slashes=False,  # it would send callers to the Host that a proxy made up, over http
        lifespan=_lifespan(chosen, transport, spans),
    )
    app.front = DirectRoutes(
        app.behind, app.state, head_limit_bytes=chosen.gateway_max_header_bytes, live=chosen.live_enabled
    )
    app.state.questions = None
    if chosen.gateway_api_keys:
        app.front = ApiKeys(
            app.front,
            keys=[key.get_secret_value() for key in chosen.gateway_api_keys],
            per_minute=chosen.gateway_key_requests_per_minute,
        )
    else:
        app.front = OwnPages(app.front, chosen.page_origins)
    app.state.metrics = Metrics(upstreams=len(chosen.upstream_urls))
    app.front = RequestLog(app.front, app.state.metrics, spans=spans)
    app.add_exception_handler(HTTPException, _as_json)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(Exception, _our_failure)
    app.include_router(router)
    app.include_router(openai_router)
    app.include_router(operator_router)
    if chosen.live_enabled:
        from vision_bench.gateway.live_application import add_live  # noqa: PLC0415  # loaded only when it is asked for

        app.front = add_live(app, app.front)
    add_docs_pages(app)
    add_page(app)
    return app


def _lifespan(
    settings: Settings, transport: Transport | None, spans: Spans | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[Mapping[str, Any]]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
        patience_seconds = settings.vllm_acquire_timeout_seconds
        async with AsyncExitStack() as opened:
            if spans is not None:
                await opened.enter_async_context(spans)
            app.state.settings = settings
            app.state.media_policy = MediaPolicy.of(settings)
            app.state.admission = Admission(
                settings.vllm_concurrency,
                upstreams=len(settings.upstream_urls),
                acquire_timeout_seconds=patience_seconds,
            )
            app.state.buffer = Buffer(settings.gateway_buffer_bytes, acquire_timeout_seconds=patience_seconds)
            app.state.pace = Pace()
            transports: dict[str, Transport] = {}
            for url in settings.upstream_urls:
                transports[url] = (
                    await opened.enter_async_context(_http(url, settings)) if transport is None else transport
                )
            app.state.fleet = await opened.enter_async_context(
                Fleet(transports, app.state.admission, api_key=_vllm_key(settings))
            )
            app.state.readiness = await opened.enter_async_context(Readiness(app.state.fleet))
            app.state.vllm = VLLMClient(app.state.fleet, timeout_seconds=settings.vllm_timeout_seconds)
            pictures: Buffer | None = None
            if settings.live_enabled:
                from vision_bench.gateway.live_application import running_live  # noqa: PLC0415  # as above

                await opened.enter_async_context(running_live(app, settings))
                pictures = app.state.live.pictures
            collector = GatewayCollector(
                app.state.metrics, app.state.buffer, app.state.fleet, version=app.version, pictures=pictures
            )
            app.state.exposition = Exposition(collector)
            app.state.routes = DirectRoutes.made(app.state)
            yield {LIMITS_KEY: ConnectionLimits.of(settings)}

    return lifespan


def _spans(settings: Settings) -> Spans | None:
    endpoint = wanted_endpoint(settings.gateway_otlp_endpoint, os.environ)
    if endpoint is None:
        return None
    from vision_bench.gateway.spans import Spans  # noqa: PLC0415  # an extra, loaded only when it is asked for

    return Spans.over_otlp(endpoint)


def _http(url: str, settings: Settings) -> HttpTransport:
    return HttpTransport(url, connect_timeout_seconds=min(CONNECT_TIMEOUT_SECONDS, settings.vllm_timeout_seconds))


def _vllm_key(settings: Settings) -> str | None:
    return settings.vllm_api_key.get_secret_value() if settings.vllm_api_key else None


async def _as_json(request: Request, problem: Exception) -> Response:
    """The router's own refusals (no such route, wrong method) in the one error shape."""
    if not isinstance(problem, HTTPException):  # Starlette's signature is wider than what it sends here
        raise problem
    path = shown_path(request.scope)
    headers = problem.headers
    if problem.status_code == 404:
        refusal = Refusal(404, f"there is no {path!r} here; /docs lists the routes", type="not_found")
    elif problem.status_code == 405:
        allowed = (headers or {}).get("Allow", "GET")
        message = f"{path!r} does not take this method; use {allowed}"
        refusal = Refusal(405, message, type="method_not_allowed", headers={"Allow": allowed})
    else:
        refusal = Refusal(problem.status_code, str(problem.detail), type="http_error", headers=headers)
    return await _refused(request, refusal)


async def _refused(request: Request, refusal: Exception) -> Response:
    """A refusal of a route behind the front."""
    if not isinstance(refusal, Refusal):
        raise refusal
    exchange_of(request.scope).outcome = refusal.type
    return Response(refusal.body, refusal.status, media_type="application/json", headers=refusal.headers)


async def _our_failure(request: Request, problem: Exception) -> Response:
    """A bug behind the front, which logs it; a caller who left is none, and gets no answer."""
    if isinstance(problem, ClientLeft | ClientDisconnect):
        raise ClientLeft from problem
    refusal = our_failure(exchange_of(request.scope).request_id)
    return Response(refusal.body, refusal.status, media_type="application/json")
