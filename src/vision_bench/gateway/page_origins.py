"""Whose web pages may use a gateway without keys: its own, and those that the operator names.

Without keys whoever reaches the port may ask, and a browser on the gateway's machine reaches it for every page that it
shows. Browsers say which page asks, and no page can forge it; programs say nothing of the kind and are let through.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from vision_bench.gateway.exchange import Refusal, header, refuse

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""They change nothing, and another site's page cannot read their answers."""
_BY_TOKEN = ("/live/", "/page/realtime")
"""Needs a token, which only a page that may ask for one has: an operator's own site may publish from its pages."""
_NOBODYS = (".localhost", ".local", ".internal", ".home.arpa")
"""Names that nobody can register, so that no stranger's page has one."""
_PORTS = {"http": 80, "https": 443}


class OwnPages:
    """Refuses what other pages send, with 403. Put in only when there are no keys: a stranger's page has none.

    Args:
        origins: further pages that may ask, such as ``https://video.example.org``.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str] = ()) -> None:
        self._app = app
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or not self._is_strange(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refusal = Refusal(
                403,
                "a web page of another site sent this, or the gateway's own name could be anybody's; if the page may "
                "use the gateway, name its origin in GATEWAY_ORIGINS, or set GATEWAY_API_KEYS",
                type="foreign_page",
            )
            await refuse(scope, receive, send, refusal, body_unread=True)
        else:  # a WebSocket: closed before it was accepted, which the server answers with 403
            await send({"type": "websocket.close", "code": 1008})

    def _is_strange(self, scope: Scope) -> bool:
        if scope["type"] == "http" and scope["method"] in _SAFE_METHODS:
            return False
        origin, site = header(scope, b"origin"), header(scope, b"sec-fetch-site")
        if origin is None and site is None:
            return False
        if scope["path"].removeprefix(scope.get("root_path", "")).startswith(_BY_TOKEN):
            return False
        return not may_drive(origin, site=site, host=header(scope, b"host") or "", origins=self._origins)


def may_drive(origin: str | None, *, site: str | None, host: str, origins: Collection[str] = ()) -> bool:
    """Whether the page that sent a request may use the gateway.

    Args:
        origin, site: the headers Origin and Sec-Fetch-Site; None: not sent.
        host: the header Host.
        origins: pages that may, whatever the other headers say.
    """
    if origin is not None and origin in origins:
        return True
    if site is not None:
        # Told of https:// and of this machine's own names alone, which no stranger's name can be made to stand for; a
        # proxy may have changed Host on the way.
        return site in ("same-origin", "none")
    return origin is None or _is_own(origin, host)


def _is_own(origin: str, host: str) -> bool:
    """Whether a page at ``origin`` was served by ``host``, which is no name that a stranger may have pointed here."""
    try:
        page, asked = urlsplit(origin), urlsplit(f"//{host}")
        page_port = page.port or _PORTS.get(page.scheme)
        is_same = page.hostname == asked.hostname and asked.port in (None, page_port)
    except ValueError:
        return False
    # A page over https:// came through a proxy that holds a certificate for its name.
    return is_same and page.scheme in _PORTS and (page.scheme == "https" or _is_nobodys(page.hostname or ""))


def _is_nobodys(name: str) -> bool:
    """Whether a stranger cannot own ``name`` and have it stand for this machine (DNS rebinding)."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return bool(name) and ("." not in name or name.endswith(_NOBODYS))
    return True
