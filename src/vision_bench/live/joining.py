"""A receipt with its asker's readings joined, and the offset of the asker's clock from the server's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from vision_bench.live.clocks import Offset, Stamp, offset_from_exchange
from vision_bench.live.receipt import Receipt

DRIFT = 1e-4
"""How far two clocks may run apart in one second, seconds: twice the worst that crystals of computers do."""


class ServerClock:
    """The tightest offset known between an asker's clock and a server's, from the questions themselves.

    An offset ages: its bound grows by what the clocks may have drifted since. A server that was started anew has
    another clock, and is told apart by its name.
    """

    def __init__(self, clock_id: str) -> None:
        self.clock_id = clock_id
        self._best: Offset | None = None
        self._at_ns = 0

    def offset(self, server: str, *, now_ns: int) -> Offset | None:
        """As far as it is known now; None before the first exchange with that clock."""
        if self._best is None or self._best.ahead != server:
            return None
        return replace(self._best, bound_ns=self._best.bound_ns + round(max(0, now_ns - self._at_ns) * DRIFT))

    def exchange(self, asked_ns: int, received: Stamp, replied: Stamp, heard_ns: int) -> None:
        """One question and its answer: kept if it tells more than what is known by now."""
        if received.clock != replied.clock:
            return
        asked, heard = Stamp(self.clock_id, asked_ns), Stamp(self.clock_id, heard_ns)
        found = offset_from_exchange(asked, received, replied, heard)
        known = None if found is None else self.offset(found.ahead, now_ns=heard_ns)
        if found is not None and (known is None or found.bound_ns <= known.bound_ns):
            self._best, self._at_ns = found, heard_ns


def join(
    receipt: Receipt,
    readings: Mapping[str, int],
    server: ServerClock,
    *,
    sent_ns: int,
    first_output_ns: int | None,
    now_ns: int,
) -> Receipt:
    """``receipt`` with the asker's readings, and with the offset of its clock from the server's.

    Args:
        readings: on the asker's clock, by the name of the stamp.
        server: learns from this question first.
        sent_ns: the question went out; again, where it was retried.
        first_output_ns: its first token was heard.
        now_ns: to which moment the offset is aged.
    """
    stamps = {name: Stamp(server.clock_id, at_ns) for name, at_ns in readings.items()}
    asked = receipt.stamps.get("asked")
    # Both ways of a question say how the clocks lie: by its first token, and by its last.
    heard: Iterable[tuple[str, int | None]] = (
        ("first_token", first_output_ns),
        ("final_token", readings.get("read")),
    )
    for name, heard_ns in heard:
        replied = receipt.stamps.get(name)
        if asked is not None and replied is not None and heard_ns is not None:
            server.exchange(sent_ns, asked, replied, heard_ns)
    ours = None if asked is None else server.offset(asked.clock, now_ns=now_ns)
    offsets = receipt.offsets if ours is None else (*receipt.offsets, ours)
    return replace(receipt, stamps={**receipt.stamps, **stamps}, offsets=offsets)
