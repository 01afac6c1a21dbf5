"""What the spans of a request say: OpenTelemetry's names where it has one, ours behind ``vision_bench.``.

Never anything out of a body, a header or a path; the request id is the one word that a caller may have chosen.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import Scope

from vision_bench.errors import HttpFailure
from vision_bench.gateway.exchange import CLIENT_LEFT, Exchange
from vision_bench.gateway.journal import Call, Wait

Attributes = dict[str, str | int]

ERROR = "error.type"
"""Stands in a span that failed, and in no other."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"})


def method_of(scope: Scope) -> str:
    """The request's method; ``_OTHER`` for a word that is none of HTTP's."""
    method: str = scope["method"]
    return method if method in _METHODS else "_OTHER"


def of_head(scope: Scope) -> Attributes:
    """What a sampler may decide by."""
    return {
        "http.request.method": method_of(scope),
        "url.scheme": scope.get("scheme", "http"),
        "network.protocol.version": scope["http_version"],
    }


def of_request(exchange: Exchange, route: str | None) -> Attributes:
    """What is known when it is over. A 4xx is the caller's error and none of the span's."""
    attributes: Attributes = {
        "http.request.body.size": exchange.body_bytes,
        "http.response.body.size": exchange.answer_bytes,
        "vision_bench.request_id": exchange.request_id,
        "vision_bench.outcome": exchange.outcome,
    }
    status = exchange.status
    optional = {
        "http.route": route,
        "http.response.status_code": status,
        "vision_bench.items": exchange.items,
        "vision_bench.items_failed": exchange.failed,
    }
    attributes |= {name: value for name, value in optional.items() if value is not None}
    is_broken = status is None or (status < 400 and exchange.outcome != "ok")
    if is_broken or (status is not None and status >= 500):
        attributes[ERROR] = str(status) if exchange.outcome in ("ok", HttpFailure.outcome) else exchange.outcome
    return attributes


def of_wait(wait: Wait) -> Attributes:
    """For room in the buffer or for a permit."""
    attributes: Attributes = {"vision_bench.request_id": wait.request_id, "vision_bench.wait_for": wait.subject}
    return attributes | ({ERROR: wait.error} if wait.error else {})


def of_call(call: Call, exchange: Exchange) -> Attributes:
    """Of one try at one vLLM. The model is not known: it stands in the body."""
    parts = urlsplit(call.url)
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "vllm",
        "server.address": parts.hostname or "",
        "server.port": parts.port or (443 if parts.scheme == "https" else 80),
        "vision_bench.request_id": call.request_id,
    }
    if call.resend_count:
        attributes["http.request.resend_count"] = call.resend_count
    error = call.error
    if call.status is not None:
        attributes["http.response.status_code"] = call.status
        if call.status >= 400:
            error = error or str(call.status)
    if error == "cancelled" and exchange.outcome == CLIENT_LEFT:
        error = CLIENT_LEFT
    return attributes | ({ERROR: error} if error else {})
