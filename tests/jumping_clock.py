"""An event loop whose clock jumps: hours of waiting take no time, and the same plan always runs the same way."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class JumpingSelector(selectors.SelectSelector):
    """Never waits: the time that the loop would sleep is added to the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("nothing is due and nothing is ready: the loop would wait for ever")
        self.now += timeout
        return super().select(0)


def run(main: Coroutine[Any, Any, None], *, within_seconds: float = 10_000) -> None:
    """``asyncio.run`` on a loop with a jumping clock."""
    selector = JumpingSelector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    try:
        loop.run_until_complete(asyncio.wait_for(main, within_seconds))
    finally:
        loop.close()
