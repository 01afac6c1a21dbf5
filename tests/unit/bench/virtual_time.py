"""An event loop whose time jumps to the next timer: laws about waiting are tested without any."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jump(selectors.SelectSelector):
    """Where the loop would wait, time passes at once."""

    seconds = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found:
            assert timeout is not None, "every task waits for something that never comes"
            self.seconds += max(timeout, 0.0)
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jump = _Jump()
        super().__init__(self.jump)

    def time(self) -> float:
        return self.jump.seconds


class VirtualClock:
    """A ``Clock`` on the running virtual loop."""

    cpu_share = 0.1

    def now_ns(self) -> int:
        return round(asyncio.get_running_loop().time() * 1e9)

    def cpu_seconds(self) -> float:
        return self.now_ns() / 1e9 * self.cpu_share

    async def sleep_until(self, when_ns: int) -> None:
        await asyncio.sleep(max(0.0, (when_ns - self.now_ns()) / 1e9))


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` to its end in virtual time."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)
