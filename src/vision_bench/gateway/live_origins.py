"""What needs a token, and nothing else, answers pages of any site: WHIP asks for it (RFC 9725), and the token allows.

Browsers send no cookies or keys along to such a route, so a page has what it was given and no more.
"""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER = "/live/"

_ANY_PAGE = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"Location, X-Frame-Index, X-Timestamp-Ms, X-Request-Id"),
)


class AnyPage:
    """Around the whole application: answers below /live/ may be read by the page that asked."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        if scope["type"] != "http" or not path.startswith(FOLDER):
            await self._app(scope, receive, send)
            return

        async def send_to_any(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_ANY_PAGE]}
            await send(message)

        await self._app(scope, receive, send_to_any)


def preflight(methods: str, *, accept_post: str | None = None) -> Response:
    """The answer to OPTIONS, which browsers ask first: what a page may send here.

    Args:
        methods: those of the route, separated by commas.
        accept_post: the media type that POST takes.
    """
    headers = {
        "Allow": f"{methods}, OPTIONS",
        "Access-Control-Allow-Methods": methods,
        "Access-Control-Allow-Headers": "Authorization, Content-Type, If-Match",
        "Access-Control-Max-Age": "600",
    }
    return Response(status_code=200, headers=headers | ({"Accept-Post": accept_post} if accept_post else {}))
