"""Who may use the gateway: its own API keys. Pure ASGI: nothing here reads the request's messages."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from vision_bench.gateway.exchange import Refusal, exchange_of, header, refuse

OPEN_PATHS = ("/healthz", "/readyz", "/docs", "/redoc", "/openapi.json", "/docs-assets/")
"""What needs no key: to a stranger it says nothing that is not public."""


class ApiKeys:
    """Asks for ``Authorization: Bearer <key>`` with one of the keys. Put in only when there are keys."""

    def __init__(self, app: ASGIApp, keys: Sequence[str]) -> None:
        self._app = app
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._knows(header(scope, b"authorization") or ""):
            await self._app(scope, receive, send)
            return
        if _is_open(scope):
            exchange_of(scope).is_stranger = True
            await self._app(scope, receive, send)
            return
        refusal = Refusal(
            401,
            "send Authorization: Bearer <key> with one of the keys in GATEWAY_API_KEYS",
            type="unauthorized",
            headers={"WWW-Authenticate": "Bearer"},
        )
        await refuse(scope, receive, send, refusal, body_unread=True)

    def _knows(self, authorization: str) -> bool:
        scheme, _, offered = authorization.partition(" ")
        token = offered.strip().encode("latin-1")
        # Every key is compared to its end, so that the time taken tells nothing about any of them.
        matches = [hmac.compare_digest(token, key) for key in self._keys]
        return scheme.lower() == "bearer" and any(matches)


def _is_open(scope: Scope) -> bool:
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    return any(path == name or (name.endswith("/") and path.startswith(name)) for name in OPEN_PATHS)
