"""The gateway's application in the test's own process, in front of nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from vision_bench.gateway.application import create_app
from vision_bench.gateway.settings import Settings


class NoTransport:
    """No call gets through to anything."""

    def post(self, path: Any, body: Any, headers: Any) -> Any:
        raise RuntimeError("a bug, payload=SECRET")


@asynccontextmanager
async def calling(**settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client that calls the application in this process."""
    app = create_app(Settings(_env_file=None, vllm_base_url="http://x/v1", **settings), transport=NoTransport())
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client,
    ):
        yield client
