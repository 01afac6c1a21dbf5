"""/docs, /redoc and /openapi.json."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from vision_bench.gateway.application import create_app
from vision_bench.gateway.settings import Settings


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(Settings(_env_file=None, vllm_base_url="http://x/v1"))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client,
    ):
        yield client


@pytest.mark.parametrize("page", ["/docs", "/redoc"])
async def test_the_pages_load_from_us_alone(client: httpx.AsyncClient, page: str) -> None:
    """No address of another host in the page, every file it names is served here, and the policy allows no other."""
    answer = await client.get(page)
    assert answer.status_code == 200
    assert not re.search(r"https?://|//[a-z]", answer.text)
    named = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
    assert len(named) >= 2
    for path in named:
        asset = await client.get(path)
        assert (asset.status_code, len(asset.content) > 1000) == (200, True), path
        assert b"//cdn." not in asset.content
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert "*" not in policy


async def test_the_pages_work_under_a_prefix(client: httpx.AsyncClient) -> None:
    """Behind a proxy that serves us under /gpu, the page names its files under /gpu too."""
    app = client._transport.app  # type: ignore[attr-defined]
    proxied = httpx.AsyncClient(transport=httpx.ASGITransport(app, root_path="/gpu"), base_url="http://gateway")
    page = (await proxied.get("/gpu/docs")).text
    assert "url: '/gpu/openapi.json'" in page
    assert 'src="/gpu/docs-assets/swagger-ui-bundle.js"' in page


async def test_every_route_shows_a_request_and_an_answer(client: httpx.AsyncClient) -> None:
    """Every route with an example of its answer; those that take a body with one of it, and every status that the
    gateway makes itself."""
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert {"/healthz", "/metrics", "/chat", "/chat/batch", "/v1/chat/completions", "/v1/models"} <= set(paths)
    for operations in paths.values():
        for operation in operations.values():
            shown = operation["responses"]["200"]["content"].values()
            assert any(content.get("example") for content in shown)
    assert paths["/healthz"]["get"]["responses"]["200"]["content"]["application/json"]["example"] == {"ok": True}
    chat, batch = paths["/chat"]["post"], paths["/chat/batch"]["post"]
    for operation in (chat, batch):
        shown = operation["requestBody"]["content"]["application/json"]["examples"]
        assert all(example["value"] for example in shown.values())
    assert {"200", "401", "413", "502", "503", "504"} <= set(chat["responses"])
    assert {"200", "400", "401", "413"} <= set(batch["responses"])
    assert "application/x-ndjson" in batch["responses"]["200"]["content"]
    assert {"application/json", "text/event-stream"} == set(chat["responses"]["200"]["content"])
    lists = [paths[path]["get"] for path in ("/v1/models", "/v1/models/{model_id}")]
    for operation in (chat, batch, *lists):
        for status, response in operation["responses"].items():
            if "400" <= status < "600":  # "default" has no code of its own
                error = response["content"]["application/json"]["example"]["error"]
                assert str(error["code"]) == status
