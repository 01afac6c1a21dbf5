"""The line of progress of ``vision-bench run``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vision_bench.bench.session import Status


class progress:
    """One line on stderr, written over twice a second.

    Not rich: drawing its bars takes milliseconds, in which no answer could be stamped.
    """

    def __enter__(self) -> Any:
        self._stream = sys.stderr
        self._width = 0
        return self._write if self._stream.isatty() else None

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")

    def _write(self, status: Status) -> None:
        line = status_line(status)
        self._stream.write("\r" + line.ljust(self._width))
        self._width = len(line)
        self._stream.flush()


def status_line(status: Status) -> str:
    """A step's progress in one line."""
    rate = "" if status.offered_rate is None else f"  offered {status.offered_rate:.1f}/s"
    achieved = f"  achieved {status.ok / status.seconds:.1f}/s" if status.seconds > 0 else ""
    left = "" if status.window_seconds is None else f"  {max(0.0, status.window_seconds - status.seconds):.0f} s left"
    medians = "".join(f"  {name} {value:.0f} ms" for name, value in (status.headline or {}).items())
    failures = "".join(f"  {name} {count}" for name, count in (status.failures or {}).items())
    return (
        f"[{status.number}/{status.steps}] {status.step}{rate}{achieved}  in flight {status.in_flight}"
        f"  sent {status.sent}  ok {status.ok}{medians}{failures}{left}"
        f"{status.note and '  '}{status.note}"
    )
