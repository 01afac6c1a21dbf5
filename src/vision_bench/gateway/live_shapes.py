"""How failures look below /v1beta: the gateway's own refusals, and vLLM's, in the two bodies of that API.

Shapes are changed at the edge, so that nothing within needs to know by which name it was called.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vision_bench.gateway.exchange import start_message
from vision_bench.gateway.keys import Allowance, allowance_of
from vision_bench.wire.shapes import Json

_TYPES = {
    "rate_limited": ("rate_limit_error", "rate_limited"),
    "acquire_timeout": ("provider_error", "model_unavailable"),
    "upstream_timeout": ("upstream_error", "upstream_timeout"),
    "connect_failed": ("upstream_error", "upstream_request_failed"),
    "truncated": ("upstream_error", "upstream_request_failed"),
    "upstream_error": ("upstream_error", "upstream_request_failed"),
    "internal_error": ("internal_error", "internal_error"),
    "shutting_down": ("internal_error", "shutting_down"),
}
"""Type and code, by the one word of our own refusals."""
_OUR_FAULTS = frozenset(
    {
        "foreign_page",
        "headers_too_large",
        "http_error",
        "invalid_request",
        "media_not_allowed",
        "method_not_allowed",
        "not_found",
        "too_large",
        "unauthorized",
        "upload_timeout",
    }
)
"""Refusals of what the caller sent; their word is the code."""


ERROR_LIMIT_BYTES = 64 * 1024
"""How much of an error of vLLM's is waited for and looked into."""


class InvalidBody(Exception):
    """A body of another shape than the API's: 422, with each fault and its place."""

    outcome = "invalid_request"

    def __init__(self, *faults: tuple[tuple[str | int, ...], str]) -> None:
        super().__init__("; ".join(f"{'.'.join(map(str, place)) or 'the body'} {message}" for place, message in faults))
        details = [{"loc": ["body", *place], "msg": message, "type": "value_error"} for place, message in faults]
        self.body = {"error": "validation_error", "message": str(self), "details": details}


def is_ours(path: str) -> bool:
    """Whether a path has the shapes of /v1beta."""
    return path.startswith("/v1beta/") or path == "/v1/streams" or path.startswith("/v1/streams/")


def is_chat(path: str) -> bool:
    """Whether failures of this path have the body of chat requests."""
    return path.endswith("/chat/completions")


def failure_body(status: int, error: Json, *, chat: bool) -> Json:
    """An OpenAI-shaped ``error`` as /v1beta tells it."""
    message, word = str(error.get("message", "")), str(error.get("type", ""))
    if not chat:
        return {"detail": message}
    told: dict[str, Any] = {"message": message}
    if word in _TYPES:
        told["type"], told["code"] = _TYPES[word]
    elif word in _OUR_FAULTS:
        told["type"], told["code"] = "validation_error", word
    elif status == 404:  # vLLM has no such model
        told |= {"type": "provider_error", "code": "model_unavailable", "upstream": {"status": status, "type": word}}
    else:
        told |= {"type": "upstream_error", "code": f"upstream_http_{status}"}
        told["upstream"] = {"status": status, "type": word}
    return {"detail": {"error": told}}


class FailureShapes:
    """Around the whole application: answers below /v1beta that are OpenAI-shaped errors get this API's body, and all
    of them say what the key has left, if it has a limit."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        if scope["type"] != "http" or not is_ours(path):
            await self._app(scope, receive, send)
            return

        async def send_with_limits(message: Message) -> None:
            allowance = allowance_of(scope)
            if message["type"] == "http.response.start" and allowance is not None:
                message = {**message, "headers": [*message["headers"], *_limit_headers(allowance)]}
            await send(message)

        await self._app(scope, receive, _Translation(send_with_limits, chat=is_chat(path)))


def _limit_headers(allowance: Allowance) -> list[tuple[bytes, bytes]]:
    told = (("limit", allowance.per_minute), ("remaining", allowance.left), ("reset", allowance.whole_in_seconds))
    return [(f"x-ratelimit-{name}".encode(), str(value).encode()) for name, value in told]


class _Translation:
    """The send of one request: an error is held until it is whole."""

    def __init__(self, send: Send, *, chat: bool) -> None:
        self._send = send
        self._chat = chat
        self._start: Message | None = None
        self._body = b""
        self._is_sent = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] >= 400:
            self._start = message
        elif self._start is None:
            await self._send(message)
        elif self._is_sent:  # more of an answer that lingers, for its caller still sends
            await self._send({**message, "body": b""})
        else:
            self._body += message.get("body", b"")
            declared = next((int(v) for n, v in self._start["headers"] if n.lower() == b"content-length"), None)
            is_whole = declared is not None and len(self._body) >= declared
            if is_whole or len(self._body) > ERROR_LIMIT_BYTES or not message.get("more_body"):
                await self._send_translated(more_body=bool(message.get("more_body")))

    async def _send_translated(self, *, more_body: bool) -> None:
        if self._start is None:
            return
        self._is_sent = True
        body = self._translated(self._start["status"])
        changed = (b"content-length", b"content-encoding")
        kept = [(name, value) for name, value in self._start["headers"] if name.lower() not in changed]
        length = start_message(0, {"Content-Length": str(len(body))})["headers"]
        await self._send({**self._start, "headers": [*kept, *length]})
        await self._send({"type": "http.response.body", "body": body, "more_body": more_body})

    def _translated(self, status: int) -> bytes:
        try:
            told = json.loads(self._body)
        except (ValueError, RecursionError):
            told = None
        error = told.get("error") if isinstance(told, dict) else None
        if isinstance(error, dict):
            return json.dumps(failure_body(status, error, chat=self._chat), ensure_ascii=False).encode()
        if isinstance(told, dict):
            return self._body
        text = self._body.decode("utf-8", "replace").strip() or f"status {status}"
        return json.dumps(failure_body(status, {"message": text[:500]}, chat=self._chat), ensure_ascii=False).encode()
