"""An OpenAI-compatible server that answers as vLLM 0.32 does, in front of any ``ChatModel``."""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vision_bench.engine.chat.admission import Slots
from vision_bench.engine.chat.chat_route import ChatRoute
from vision_bench.engine.chat.exchange import Exchange, header
from vision_bench.engine.chat.metrics import CONTENT_TYPE, EngineMetrics
from vision_bench.engine.chat.model import ChatModel
from vision_bench.engine.chat.replies import model_list
from vision_bench.engine.chat.settings import VLLM_VERSION, EngineSettings
from vision_bench.engine.chat.truth import TruthLog
from vision_bench.wire.ndjson import MEDIA_TYPE as NDJSON

UNCOUNTED = frozenset({"/metrics", "/health", "/ping", "/version", "/load", "/truth"})
"""Routes that the http_* metrics leave out."""

Handler = Callable[[Scope, Receive, Send], Awaitable[None]]


def create_engine(
    model: ChatModel,
    *,
    settings: EngineSettings | None = None,
    knows_model: Callable[[str], bool] = lambda _: False,
) -> ASGIApp:
    """The ASGI application.

    Args:
        model: what answers.
        settings: vLLM's flags; the defaults serve the name ``qwen``.
        knows_model: accepts further model names than the served ones (``DeclaredModel.knows`` does).
    """
    return Engine(model, settings or EngineSettings(), knows_model)


class Engine:
    """Routes, keys, request ids and HTTP counts around the chat route."""

    def __init__(self, model: ChatModel, settings: EngineSettings, knows_model: Callable[[str], bool]) -> None:
        self._settings = settings
        self._slots = Slots(settings.max_num_seqs, max_waiting=settings.max_num_queued_reqs)
        self._metrics = EngineMetrics(settings.model_name, settings.max_model_len)
        self._truth = TruthLog(settings.truth_size)
        self._created = int(time.time())
        self._chat = ChatRoute(
            model,
            settings,
            slots=self._slots,
            metrics=self._metrics,
            truth=self._truth,
            knows_model=knows_model,
        )
        self._routes: dict[str, dict[str, Handler]] = {
            "/v1/chat/completions": {"POST": self._chat},
            "/v1/models": {"GET": self._models},
            "/health": {"GET": self._health},
            "/ping": {"GET": self._health, "POST": self._health},
            "/version": {"GET": self._version},
            "/load": {"GET": self._load},
            "/metrics": {"GET": self._metrics_page},
            "/truth": {"GET": self._truth_page, "DELETE": self._forget_truth},
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            raise RuntimeError(f"this engine speaks HTTP, not {scope['type']}")

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.monotonic()
        request_id = header(scope, b"x-request-id")
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status != 500:  # vLLM's 500s leave before its header middleware sees them
                    shown_id = (request_id or uuid4().hex).encode("latin-1")
                    message = {**message, "headers": [*message["headers"], (b"x-request-id", shown_id)]}
            await send(message)

        path, method = scope["path"], scope["method"]
        route = self._routes.get(path)
        try:
            await self._dispatch(route, scope, receive, send_with_id)
        finally:
            if path not in UNCOUNTED:
                handler = path if route else "none"
                self._metrics.count("http_requests", handler=handler, method=method, status=f"{status // 100}xx")
                seconds = time.monotonic() - started
                self._metrics.observe("http_request_duration_seconds", seconds, handler=handler, method=method)

    async def _dispatch(self, route: dict[str, Handler] | None, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith("/v1") and not self._has_key(scope):
            await Exchange(send).json(401, {"error": "Unauthorized"})
        elif route is None:
            await Exchange(send).json(404, {"detail": "Not Found"})
        elif scope["method"] not in route:
            await Exchange(send).json(405, {"detail": "Method Not Allowed"}, {"allow": ", ".join(route)})
        else:
            await route[scope["method"]](scope, receive, send)

    def _has_key(self, scope: Scope) -> bool:
        key = self._settings.api_key
        sent = header(scope, b"authorization") or ""
        return key is None or hmac.compare_digest(sent.encode(), f"Bearer {key}".encode())

    async def _models(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        settings = self._settings
        cards = model_list(settings.served_model_names, created=self._created, max_model_len=settings.max_model_len)
        await Exchange(send).json(200, cards)

    async def _health(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await Exchange(send).whole(200, b"")

    async def _version(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await Exchange(send).json(200, {"version": VLLM_VERSION})

    async def _load(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await Exchange(send).json(200, {"server_load": self._chat.in_flight})

    async def _metrics_page(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self._metrics.gauge("vllm:num_requests_running", self._slots.running)
        self._metrics.gauge("vllm:num_requests_waiting", self._slots.waiting)
        self._metrics.gauge("vllm:num_requests_waiting_by_reason", self._slots.waiting, reason="capacity")
        await Exchange(send).whole(200, self._metrics.render().encode(), CONTENT_TYPE)

    async def _truth_page(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await Exchange(send).whole(200, b"".join(self._truth.lines()), NDJSON)

    async def _forget_truth(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self._truth.clear()
        await Exchange(send).whole(200, b"")


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
