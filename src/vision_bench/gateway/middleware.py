"""Around every request: its id and its line in the log. Pure ASGI: nothing here reads the request's messages."""

from __future__ import annotations

import logging
import re
import secrets

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

logger = logging.getLogger("vision_bench.gateway.access")

_USABLE_ID = re.compile(r"[\x21-\x7e]{1,128}")


class RequestLog:
    """Gives every request an id and one log line, and turns our own failures into a JSON answer that names the id.

    The line: id, route, status, items, queue and upstream ms, outcome. Never a body, a header or a query.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(request_id=_usable_id(header(scope, b"x-request-id")))
        scope[SCOPE_KEY] = exchange
        stamp = (b"x-request-id", exchange.request_id.encode())

        async def send_stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), stamp]
                exchange.status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_stamped)
        except ClientLeft:
            exchange.outcome = CLIENT_LEFT
        except Exception:
            logger.exception("request_id=%s: the gateway itself failed", exchange.request_id)
            if exchange.status is None:
                await refuse(scope, receive, send_stamped, our_failure(exchange.request_id))
            exchange.outcome = "internal_error"
        finally:
            if logger.isEnabledFor(logging.INFO):
                # Not logger.info: it would walk the stack for a file and a line that nobody is shown.
                text = _line(scope, exchange)
                logger.handle(logger.makeRecord(logger.name, logging.INFO, "", 0, text, (), None))


def our_failure(request_id: str) -> Refusal:
    """The answer to a request that met a bug: where to look, and no reason."""
    message = f"the gateway failed; its log has the reason under request id {request_id}"
    return Refusal(500, message, type="internal_error")


def _usable_id(offered: str | None) -> str:
    if offered is not None and _USABLE_ID.fullmatch(offered):
        return offered
    return secrets.token_hex(4)


def _line(scope: Scope, exchange: Exchange) -> str:
    route = exchange.route or getattr(scope.get("route"), "path", None) or repr(scope["path"][:100])
    status = exchange.status if exchange.status is not None else 499  # nginx's word for "nobody to answer"
    queue_ms, upstream_ms = exchange.timings.queue_ms, exchange.timings.upstream_ms
    return (
        f"request_id={exchange.request_id} method={scope['method']} route={route} status={status} "
        f"items={_shown(exchange.items)} failed={_shown(exchange.failed)} "
        f"queue_ms={'-' if queue_ms is None else f'{queue_ms:.1f}'} "
        f"upstream_ms={'-' if upstream_ms is None else f'{upstream_ms:.1f}'} outcome={exchange.outcome}"
    )


def _shown(count: int | None) -> str:
    return "-" if count is None else str(count)
