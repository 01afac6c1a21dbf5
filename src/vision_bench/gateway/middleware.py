"""Around every request: its id, its times, its line in the log, its place in the counts.

Pure ASGI: nothing here reads the request's messages.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vision_bench.gateway.exchange import (
    CLIENT_LEFT,
    SCOPE_KEY,
    ClientLeft,
    Exchange,
    Refusal,
    header,
    refuse,
)
from vision_bench.gateway.logs import EntryLog
from vision_bench.gateway.metrics import OTHER_ROUTE, Metrics
from vision_bench.gateway.trace import trace_of

if TYPE_CHECKING:  # needs the extra
    from vision_bench.gateway.spans import Spans

logger = logging.getLogger("vision_bench.gateway.access")

_GRACE_IS_OVER = "graceful shutdown exceeded"
"""What uvicorn says when it cancels the requests that took longer than a stopping server waits."""

_USABLE_ID = re.compile(r"[\x21-\x7e]{1,128}")


class RequestLog:
    """Gives every request an id, one log line and its place in the counts, and every answer the id and the times so
    far; turns our own failures into a JSON answer that names the id.

    The line: id, route, status, items, queue and upstream ms, outcome, the caller's trace. Never a body, another
    header or a query.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        *,
        spans: Spans | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._spans = spans
        self._clock = clock
        self._log = EntryLog(logger)
        # To find a line in the log, no secret: asking the system for random bytes took a twentieth of a request's work.
        self._ids = random.Random()  # noqa: S311

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _usable_id(header(scope, b"x-request-id")) or f"{self._ids.getrandbits(32):08x}"
        exchange = Exchange(request_id, self._metrics, self._clock, self._clock(), trace_of(scope["headers"]))
        scope[SCOPE_KEY] = exchange
        recording = None if self._spans is None else self._spans.begin(exchange, scope)
        stamp = (b"x-request-id", exchange.request_id.encode())

        async def send_stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                timing = (b"server-timing", exchange.server_timing.encode())
                message["headers"] = [*message.get("headers", ()), stamp, timing]
            try:
                await send(message)
            except (OSError, RuntimeError) as problem:
                if _is_closed(problem):
                    raise ClientLeft from problem
                raise
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
            elif (body := message.get("body")) and scope["method"] != "HEAD":
                exchange.answer_bytes += len(body)

        self._metrics.in_progress += 1
        try:
            await self._app(scope, receive, send_stamped)
        except ClientLeft:
            exchange.outcome = CLIENT_LEFT
            self._metrics.left[exchange.stage] += 1
        except asyncio.CancelledError as cancelled:
            exchange.outcome = "cancelled"
            if _GRACE_IS_OVER not in str(cancelled):
                raise
            # Raised on, uvicorn would log a traceback and answer 500.
            if exchange.status is None:
                await refuse(scope, receive, send_stamped, _stopping())
        except Exception:
            logger.exception(
                "request_id=%s: the gateway itself failed",
                exchange.request_id,
                extra={
                    "request_id": exchange.request_id,
                    "trace_id": exchange.trace.trace_id if exchange.trace else None,
                },
            )
            if exchange.status is None:
                await refuse(scope, receive, send_stamped, our_failure(exchange.request_id))
            exchange.outcome = "internal_error"
        finally:
            self._metrics.in_progress -= 1
            self._count(scope, exchange)
            self._log.add(RequestEntry(scope, exchange))
            if recording is not None:
                recording.end(_route(scope, exchange))

    def _count(self, scope: Scope, exchange: Exchange) -> None:
        self._metrics.request_ended(
            _route(scope, exchange) or OTHER_ROUTE,
            status=_status(exchange),
            outcome=exchange.outcome,
            seconds=exchange.seconds,
            body_bytes=exchange.body_bytes,
            answer_bytes=exchange.answer_bytes,
        )


def _is_closed(problem: OSError | RuntimeError) -> bool:
    """Whether the caller has closed the connection.

    Between its end and uvicorn's hearing of it, uvloop refuses to write with a RuntimeError.
    """
    return isinstance(problem, OSError) or "the handler is closed" in str(problem)


def _stopping() -> Refusal:
    """The answer to a request for which the stopping gateway's patience was too short."""
    message = "the gateway is being stopped and could not wait for the end of this request; send it again"
    return Refusal(503, message, type="shutting_down", headers={"Retry-After": "1", "Connection": "close"})


def our_failure(request_id: str) -> Refusal:
    """The answer to a request that met a bug: where to look, and no reason."""
    message = f"the gateway failed; its log has the reason under request id {request_id}"
    return Refusal(500, message, type="internal_error")


def _usable_id(offered: str | None) -> str | None:
    return offered if offered is not None and _USABLE_ID.fullmatch(offered) else None


def _route(scope: Scope, exchange: Exchange) -> str | None:
    """The route that answered: one of ours, whatever the caller asked for."""
    return exchange.route or getattr(scope.get("route"), "path_format", None)


def _status(exchange: Exchange) -> int:
    return 499 if exchange.status is None else exchange.status  # nginx's word for "nobody to answer"


class RequestEntry:
    """The log's entry of one request that is over."""

    __slots__ = ("_exchange", "_scope")

    def __init__(self, scope: Scope, exchange: Exchange) -> None:
        self._scope = scope
        self._exchange = exchange

    def __str__(self) -> str:
        exchange, scope = self._exchange, self._scope
        queue_ms, upstream_ms = exchange.timings.queue_ms, exchange.timings.upstream_ms
        # A path that no route knows is text from outside: without spaces and line ends it stays one value.
        route = _route(scope, exchange) or quote(shown_path(scope))
        return (
            f"request_id={exchange.request_id} method={scope['method']} route={route} status={_status(exchange)} "
            f"items={_shown(exchange.items)} failed={_shown(exchange.failed)} "
            f"queue_ms={'-' if queue_ms is None else f'{queue_ms:.1f}'} "
            f"upstream_ms={'-' if upstream_ms is None else f'{upstream_ms:.1f}'} outcome={exchange.outcome}"
            f"{f' trace_id={exchange.trace.trace_id}' if exchange.trace else ''}"
        )

    def fields(self) -> dict[str, str | int | float | None]:
        """The same as typed values; the times with more places."""
        exchange, scope = self._exchange, self._scope
        trace = {"trace_id": exchange.trace.trace_id} if exchange.trace else {}
        return {
            "request_id": exchange.request_id,
            "method": scope["method"],
            "route": _route(scope, exchange) or shown_path(scope),
            "status": _status(exchange),
            "items": exchange.items,
            "failed": exchange.failed,
            "queue_ms": _rounded(exchange.timings.queue_ms),
            "upstream_ms": _rounded(exchange.timings.upstream_ms),
            "outcome": exchange.outcome,
            **trace,
        }


def shown_path(scope: Scope) -> str:
    """The path as far as it is shown, for a caller chose it."""
    path: str = scope["path"][:100]
    return path


def _shown(count: int | None) -> str:
    return "-" if count is None else str(count)


def _rounded(ms: float | None) -> float | None:
    return None if ms is None else round(ms, 3)
