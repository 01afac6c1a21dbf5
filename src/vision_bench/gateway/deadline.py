"""A limit on how long a block may take, for the one place that every call passes."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self


class Deadline:
    """``asyncio.timeout``, in a third of its time: no coroutines, and a limit that is never moved.

    Raises, on leaving:
        TimeoutError: the time is over and the block was cancelled for it.

    Attributes:
        is_over: it has struck.
    """

    __slots__ = ("_cancelling", "_seconds", "_task", "_timer", "is_over")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.is_over = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline needs a task to cancel")
        self._task = task
        self._cancelling = task.cancelling()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._strike)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        # Somebody else may have cancelled the task too: then it is not our doing alone, and not a timeout.
        if self.is_over and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from problem

    def _strike(self) -> None:
        self.is_over = True
        self._task.cancel()
