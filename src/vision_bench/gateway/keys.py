"""Who may use the gateway, and how much: its own API keys. Pure ASGI: nothing here reads the request's messages."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from vision_bench.gateway.exchange import Refusal, exchange_of, header, refuse

OPEN_PATHS = frozenset({"/", "/healthz", "/readyz", "/docs", "/redoc", "/openapi.json", "/v1beta/models"})
OPEN_FOLDERS = ("/page/", "/docs-assets/", "/live/")
"""What needs no key: to a stranger it says nothing that is not public. Below /live/, and for a session of generated
video below /page/, a token is needed instead."""

_ALLOWANCE = "vision_bench.allowance"
_OWNER = "vision_bench.owner"
_MINUTE_NS = 60_000_000_000


class Allowance:
    """How many requests one key has left: so many a minute, all of them at once if it was silent for a minute.

    One number, the time at which the allowance will be whole again, so that nothing runs while nobody asks.
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._step_ns = _MINUTE_NS // per_minute
        self._whole_at_ns = clock()

    @property
    def left(self) -> int:
        """How many may come at once, now."""
        late_ns = max(0, self._whole_at_ns - self._clock())
        return max(0, self.per_minute - -(-late_ns // self._step_ns))

    @property
    def whole_in_seconds(self) -> int:
        """After how long all of them may come at once."""
        return max(0, -(-(self._whole_at_ns - self._clock()) // 1_000_000_000))

    def take(self) -> None:
        """Use one up.

        Raises:
            Refusal: 429, none is left. None was used.
        """
        now_ns = self._clock()
        whole_at_ns = max(self._whole_at_ns, now_ns) + self._step_ns
        late_ns = whole_at_ns - now_ns - self._step_ns * self.per_minute
        if late_ns > 0:
            raise _used_up(self.per_minute, _seconds_up(late_ns))
        self._whole_at_ns = whole_at_ns

    def take_for_batch(self) -> None:
        """Use one up for a further item of a batch.

        Raises:
            Refusal: 429 for the whole batch, to be sent again when the allowance will be whole.
        """
        try:
            self.take()
        except Refusal:
            wait_seconds = _seconds_up(self._whole_at_ns - self._clock())
            raise _used_up(
                self.per_minute, wait_seconds, hint="; a batch counts its items: send a smaller one"
            ) from None


def allowance_of(scope: Scope) -> Allowance | None:
    """What the key of this request has left; None: it has no limit."""
    allowance: Allowance | None = scope.get(_ALLOWANCE)
    return allowance


def owner_of(scope: Scope) -> str:
    """Whose request this is: a name for its API key, never the key. Without keys there is one owner."""
    owner: str = scope.get(_OWNER, "everybody")
    return owner


class ApiKeys:
    """Asks for ``Authorization: Bearer <key>`` with one of the keys. Put in only when there are keys.

    Args:
        per_minute: requests of one key; what a request uses beyond its first is for its route to take.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: Sequence[str],
        *,
        per_minute: int | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._app = app
        self._keys = [_digest(key.encode()) for key in keys]
        self._allowances = [Allowance(per_minute, clock=clock) if per_minute else None for _ in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        place = self._find(header(scope, b"authorization") or "")
        if place is not None:
            scope[_OWNER] = f"key-{place}"
        if _is_open(scope):
            if scope["type"] == "http":
                exchange_of(scope).is_stranger = place is None
            await self._app(scope, receive, send)
            return
        try:
            self._admit(place, scope)
        except Refusal as refusal:
            if scope["type"] == "http":
                await refuse(scope, receive, send, refusal, body_unread=True)
            else:  # a WebSocket: closed before it was accepted, which the server answers with 403
                await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)

    def _admit(self, place: int | None, scope: Scope) -> None:
        """Take one request from what the key has left, which ``scope`` then holds.

        Raises:
            Refusal: 401, no key; 429, nothing left.
        """
        if place is None:
            raise Refusal(
                401,
                "send Authorization: Bearer <key> with one of the keys in GATEWAY_API_KEYS",
                type="unauthorized",
                headers={"WWW-Authenticate": "Bearer"},
            )
        scope[_ALLOWANCE] = allowance = self._allowances[place]
        if allowance is not None:
            allowance.take()

    def _find(self, authorization: str) -> int | None:
        """The place of the caller's key among ours."""
        scheme, _, offered = authorization.partition(" ")
        # The letters of a header are bytes. Not strip(): to it, some bytes of Korean letters are blanks.
        token = _digest(offered.strip(" \t").encode("latin-1"))
        # Every key is compared to its end, and as a digest, so that the time taken tells nothing about any of them.
        matches = [hmac.compare_digest(token, key) for key in self._keys]
        return matches.index(True) if scheme.lower() == "bearer" and True in matches else None


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def _seconds_up(duration_ns: int) -> int:
    return max(1, -(-duration_ns // 1_000_000_000))


def _used_up(per_minute: int, wait_seconds: int, *, hint: str = "") -> Refusal:
    message = (
        f"this key has used up its {per_minute} requests a minute (GATEWAY_KEY_REQUESTS_PER_MINUTE); "
        f"try again in {wait_seconds} s{hint}"
    )
    return Refusal(429, message, type="rate_limited", headers={"Retry-After": str(wait_seconds)})


def _is_open(scope: Scope) -> bool:
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)
