"""Short-lived tokens that allow one thing: to publish into one stream, to look at its frames, to begin one kind of
session. Not API keys."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import Literal

Scope = Literal["publish", "view", "realtime"]


class Tokens:
    """Made and checked by one server; nothing is stored, and a new server knows none of the old ones.

    Args:
        secret: what they are signed with; random when not given.
    """

    def __init__(self, secret: bytes | None = None, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._secret = secret or secrets.token_bytes(32)
        self._clock = clock

    def issue(self, scope: Scope, stream_id: str, *, seconds: float) -> str:
        """A token that is good for ``seconds`` from now."""
        expires_ns = self._clock() + round(seconds * 1e9)
        return f"{scope}.{expires_ns}.{self._signature(scope, stream_id, expires_ns)}"

    def admits(self, token: str, scope: Scope, stream_id: str) -> bool:
        """Whether ``token`` allows ``scope`` on this stream now."""
        named, _, rest = token.partition(".")
        expires, _, signature = rest.partition(".")
        if named != scope or not (expires.isascii() and expires.isdigit() and len(expires) <= 20):
            return False
        expected = self._signature(scope, stream_id, int(expires))
        return hmac.compare_digest(signature.encode(), expected.encode()) and self._clock() < int(expires)

    def _signature(self, scope: Scope, stream_id: str, expires_ns: int) -> str:
        # No field can hold a line end: a scope and a number have none, and the id is the last.
        text = f"{scope}\n{expires_ns}\n{stream_id}".encode()
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()
