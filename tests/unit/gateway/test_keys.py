"""The gateway's own API keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

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


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        ("Bearer nope", 401),
        ("Bearer ", 401),
        ("Basic one", 401),
        ("one", 401),
        ("Bearer one", 400),
        ("bearer two", 400),
    ],
)
async def test_keys(authorization: str | None, status: int) -> None:
    """With GATEWAY_API_KEYS set, only a bearer of one of them gets as far as having its batch looked at."""
    headers = {"Authorization": authorization} if authorization else {}
    async with calling(gateway_api_keys="one,two") as client:
        answer = await client.post("/chat/batch", content=b"{}", headers=headers)
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
        assert answer.headers["x-request-id"]
        for open_path in ("/healthz", "/docs", "/redoc", "/openapi.json"):
            assert (await client.get(open_path)).status_code == 200
        assert (await client.get("/nope")).status_code == 401


async def test_open_paths_stay_open_under_a_prefix() -> None:
    """Behind a proxy that serves us under /gpu, health needs no key and /chat does."""
    settings = Settings(_env_file=None, vllm_base_url="http://x/v1", gateway_api_keys="one")
    app = create_app(settings, transport=NoTransport())
    prefixed = httpx.ASGITransport(app, root_path="/gpu")
    async with httpx.AsyncClient(transport=prefixed, base_url="http://gateway") as client:
        assert (await client.get("/gpu/healthz")).status_code == 200
        assert (await client.post("/gpu/chat", content=b"{}")).status_code == 401
