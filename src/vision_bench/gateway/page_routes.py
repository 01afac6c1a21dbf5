"""The page at /: its files, what it shows of the gateway, and its way to the server of generated video.

Everything but a session's ticket is open, for the page must be there before its visitor can type a key; strangers hear
what a page needs to ask for one, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, WebSocket
from starlette.responses import JSONResponse, Response

from vision_bench.gateway.exchange import Refusal, exchange_of
from vision_bench.gateway.page_relay import relay
from vision_bench.gateway.page_state import models_shown, servers_shown
from vision_bench.gateway.settings import Settings
from vision_bench.live.tokens import Tokens

TICKET_PATH = "/v1/realtime/ticket"
REALTIME_PATH = "/page/realtime"
PROTOCOL = "vision-bench.realtime.v1"
"""The subprotocol of the page, which cannot send a header: ``[PROTOCOL, "token.<token>"]``."""
TICKET_SECONDS = 30
SESSIONS = 8
"""Sessions of generated video at once. The server runs them one after the other."""

INDEX = "index.html"
MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

HEADERS: Mapping[str, str] = {
    # Nothing inline, nothing from elsewhere, no text that becomes markup. A picture is a frame that was fetched with
    # a token (blob:), a video is a camera or the parts of a stream (blob:).
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
        "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


def add_page(app: FastAPI) -> None:
    """Put the page, its files and its routes into ``app``. They are no part of the documented API."""
    page = _read_files()
    app.state.page_tokens = Tokens()
    app.state.realtime_sessions = set()

    async def index(_: Request) -> Response:
        return _sent(page, INDEX)

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in page:
            raise Refusal(404, f"the page has no file {name[:100]!r}", type="not_found")
        return _sent(page, name)

    for path, route in (("/", index), ("/page/state", state), ("/page/question", question), ("/page/{name}", file)):
        app.add_api_route(path, route, methods=["GET"], include_in_schema=False)
    app.add_api_route(TICKET_PATH, ticket, methods=["POST"], include_in_schema=False)
    app.add_api_websocket_route(REALTIME_PATH, realtime)


def _read_files() -> dict[str, bytes]:
    """The page's files by name: no request names a path of this machine."""
    return {file.name: file.read_bytes() for file in (files("vision_bench.gateway") / "page").iterdir()}


def _sent(page: Mapping[str, bytes], name: str) -> Response:
    return Response(page[name], media_type=MEDIA_TYPES[name.rpartition(".")[2]], headers=HEADERS)


async def state(request: Request) -> Response:
    """What the page needs: which of its parts there are, whether a key is wanted and was right, and the load now."""
    app, settings = request.app.state, _settings(request.app)
    is_known = not exchange_of(request.scope).is_stranger
    body: dict[str, Any] = {
        "needs_key": bool(settings.gateway_api_keys),
        "is_known": is_known,
        "live": settings.live_enabled,
        "realtime": settings.realtime_base_url is not None,
        "models": None,
        "servers": None,
        "waiting": None,
    }
    if is_known:
        report = await app.readiness.report()
        urls = settings.live_passthrough_urls
        body |= {
            "models": models_shown(report, app.fleet, passthrough_urls=urls),
            "servers": servers_shown(report, app.fleet),
            "waiting": app.admission.waiting,
        }
    return JSONResponse(body, headers={"Cache-Control": "no-store"})


async def question(_: Request) -> Response:
    """The analysis of a clip: the prompt in each language, and the schema that an answer must keep to."""
    return JSONResponse(await asyncio.to_thread(_question), headers={"Cache-Control": "no-cache"})


def _question() -> dict[str, Any]:
    # The schema's checker takes 40 MB and half a second, which a gateway without visitors does without.
    from vision_bench.answers.analysis import PROMPTS, SCHEMA_NAME, analysis_schema  # noqa: PLC0415

    return {"prompts": PROMPTS, "schema_name": SCHEMA_NAME, "schema": analysis_schema()}


async def ticket(request: Request) -> Response:
    """A token to begin a session of generated video with, for a browser's WebSocket can send no key."""
    if _settings(request.app).realtime_base_url is None:
        raise Refusal(404, "there is no server of generated video; set REALTIME_BASE_URL", type="not_found")
    token = request.app.state.page_tokens.issue("realtime", PROTOCOL, seconds=TICKET_SECONDS)
    return JSONResponse({"path": REALTIME_PATH.lstrip("/"), "protocol": PROTOCOL, "token": token})


async def realtime(socket: WebSocket) -> None:
    """A session of generated video, passed on to the server. Needs a ticket."""
    app, settings = socket.app.state, _settings(socket.app)
    offered = socket.scope.get("subprotocols", [])
    token = next((name.removeprefix("token.") for name in offered if name.startswith("token.")), "")
    sessions: set[WebSocket] = app.realtime_sessions
    if settings.realtime_base_url is None or not app.page_tokens.admits(token, "realtime", PROTOCOL):
        await socket.close(1008)  # before it was accepted: 403
        return
    await socket.accept(subprotocol=PROTOCOL if PROTOCOL in offered else None)
    if len(sessions) >= SESSIONS:
        await socket.close(1013, f"{SESSIONS} sessions run already; try again later")
        return
    key = settings.realtime_api_key
    sessions.add(socket)
    try:
        await relay(socket, settings.realtime_base_url, api_key=key.get_secret_value() if key else None)
    finally:
        sessions.discard(socket)


def _settings(app: FastAPI) -> Settings:
    settings: Settings = app.state.settings
    return settings
