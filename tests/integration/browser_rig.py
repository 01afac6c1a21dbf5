"""A real Chromium on a page of the gateway, with a camera that is none and everything that it complains about."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WAIT_MS = 60_000

FLAGS = (
    "--no-sandbox",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    # Else the browser hides its addresses behind names that only other browsers of the network can look up.
    "--disable-features=WebRtcHideLocalIpsWithMdns",
    "--allow-loopback-in-peer-connection",
    "--autoplay-policy=no-user-gesture-required",
)


@dataclass(slots=True)
class Tab:
    """A page, what it asked for, and what went wrong in it."""

    page: Any
    asked: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    async def text(self, selector: str) -> str:
        """What a reader sees there."""
        found: str = await self.page.inner_text(selector)
        return found

    async def until_text(self, selector: str, words: str) -> str:
        """Wait until ``words`` are there; the whole text."""
        await self.page.locator(selector, has_text=words).first.wait_for(timeout=WAIT_MS)
        return await self.text(selector)


@asynccontextmanager
async def tab(*, flags: Sequence[str] = (), **context: Any) -> AsyncIterator[Tab]:
    """An empty tab; ``flags`` are the browser's, ``context`` as Playwright's new_context takes it."""
    from playwright.async_api import async_playwright

    chromium = shutil.which("chromium")
    assert chromium, "chromium is missing: apt-get install chromium"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=Path(chromium), args=[*FLAGS, *flags])
        try:
            page = await (await browser.new_context(**context)).new_page()
            opened = Tab(page)
            page.on("request", lambda request: opened.asked.append(request.url))
            page.on("pageerror", lambda error: opened.problems.append(str(error)))
            page.on(
                "console", lambda said: opened.problems.append(said.text) if said.type in {"error", "warning"} else None
            )
            page.set_default_timeout(WAIT_MS)
            yield opened
        finally:
            await browser.close()
