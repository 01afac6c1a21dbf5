"""The clock of a run: monotonic nanoseconds, and waiting for an instant to a fraction of a millisecond."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import time
from typing import Protocol, Self

_CLOCK_MONOTONIC = 1
_ABSOLUTE = 1


class Clock(Protocol):
    """What the driver needs of a clock. Tests put one in its place that does not wait."""

    def now_ns(self) -> int:
        """Monotonic time."""
        ...

    def cpu_seconds(self) -> float:
        """Processor time that this process has used."""
        ...

    async def sleep_until(self, when_ns: int) -> None:
        """Return at ``when_ns``; when it is past, after one turn of the event loop."""
        ...


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Timer(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class MonotonicClock:
    """``time.monotonic_ns``, with the kernel's own timer where there is one. One coroutine may sleep at a time.

    An event loop's timers have a grain of 1 ms (epoll, libuv): a rate of 100 a second would jitter by a tenth of its
    gaps. A timerfd wakes the loop at the nanosecond asked for, and costs no spinning. Elsewhere than on Linux the
    loop's own timers are used.
    """

    def __init__(self) -> None:
        self._fd: int | None = None
        self._waiter: asyncio.Future[None] | None = None

    def __enter__(self) -> Self:
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None, use_errno=True)
            fd = self._libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
            if fd >= 0:
                self._fd = fd
                asyncio.get_running_loop().add_reader(fd, self._fire, fd)
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = None

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def cpu_seconds(self) -> float:
        return time.process_time()

    async def sleep_until(self, when_ns: int) -> None:
        remaining_ns = when_ns - time.monotonic_ns()
        if remaining_ns <= 0 or self._fd is None:
            await asyncio.sleep(max(0.0, remaining_ns / 1e9))
            return
        timer = _Timer(_Timespec(0, 0), _Timespec(*divmod(when_ns, 1_000_000_000)))
        self._waiter = asyncio.get_running_loop().create_future()
        if self._libc.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(timer), None):
            raise OSError(ctypes.get_errno(), "the kernel's timer could not be set")
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _fire(self, fd: int) -> None:
        try:
            os.read(fd, 8)
        except BlockingIOError:  # a timer that was set anew after it had fired: its time has not come
            return
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
