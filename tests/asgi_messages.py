"""ASGI messages for tests that stand in for the server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any


def receiver(messages: Sequence[dict[str, Any]]) -> Any:
    """An ASGI ``receive`` that gives these messages and then nothing more."""
    left = list(messages)

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return receive


def part(body: bytes, *, more: bool = True) -> dict[str, Any]:
    """One piece of a request's body."""
    return {"type": "http.request", "body": body, "more_body": more}


LEFT = {"type": "http.disconnect"}
