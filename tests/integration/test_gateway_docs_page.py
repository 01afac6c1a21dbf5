"""/docs and /redoc in a real browser without a network."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.integration.gateway_rig import gateway
from tests.integration.stub_upstream import stub_upstream


@pytest.mark.debian("chromium")
@pytest.mark.parametrize("page", ["/docs", "/redoc"])
async def test_the_page_is_drawn_offline(page: str) -> None:
    """The three operations are on the page, and every request that the browser makes goes to the gateway."""
    from playwright.async_api import async_playwright

    chromium = shutil.which("chromium")
    assert chromium, "chromium is missing: apt-get install chromium"
    asked: list[str] = []
    problems: list[str] = []
    async with stub_upstream() as stub, gateway(stub) as rig, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=Path(chromium), args=["--no-sandbox"])
        try:
            tab = await browser.new_page()
            tab.on("request", lambda request: asked.append(request.url))
            tab.on("pageerror", lambda error: problems.append(str(error)))
            await tab.goto(rig.url + page)
            for words in ("Is the gateway up?", "One chat body to vLLM", "Many chat bodies"):
                await tab.get_by_text(words).first.wait_for(timeout=60_000)
        finally:
            await browser.close()
    assert any(url.endswith("/openapi.json") for url in asked)
    elsewhere = [url for url in asked if not url.startswith((rig.url, "data:", "blob:"))]
    assert elsewhere == []
    assert problems == []
