"""The client's half of a receipt: its own readings, and the offset of its clock from the server's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from vision_bench.live.clocks import Offset, Stamp, offset_from_exchange
from vision_bench.live.receipt import Receipt, read_receipt
from vision_bench.wire.chat import Json

DRIFT = 1e-4
"""How far two clocks may run apart in one second, seconds: twice the worst that crystals of computers do."""


class ServerClock:
    """The tightest offset known between this client's clock and a server's, from the questions themselves.

    An offset ages: its bound grows by what the clocks may have drifted since. A server that was started anew has
    another clock, and is told apart by its name.
    """

    def __init__(self, clock_id: str) -> None:
        self._clock_id = clock_id
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
        asked, heard = Stamp(self._clock_id, asked_ns), Stamp(self._clock_id, heard_ns)
        found = offset_from_exchange(asked, received, replied, heard)
        known = None if found is None else self.offset(found.ahead, now_ns=heard_ns)
        if found is not None and (known is None or found.bound_ns <= known.bound_ns):
            self._best, self._at_ns = found, heard_ns


class ClientHalf:
    """The readings of one question, in the order in which they are taken.

    Args:
        clock: monotonic, ns.
        clock_id: its name in stamps.
    """

    def __init__(self, clock: Callable[[], int], clock_id: str) -> None:
        self._clock = clock
        self._clock_id = clock_id
        self.decided_ns = clock()
        self.sent_ns = self.decided_ns
        self.tries = 0
        self.first_output_ns: int | None = None
        self._stamps = {"decided": Stamp(clock_id, self.decided_ns)}

    def sent(self) -> None:
        """The question goes out; again, when it is retried. The time between is within the stage ``request``."""
        self.sent_ns = self._clock()
        self.tries += 1

    def stamp(self, name: str, at_ns: int | None) -> None:
        """A reading that was taken at ``at_ns``; None leaves it out."""
        if at_ns is not None:
            self._stamps[name] = Stamp(self._clock_id, at_ns)

    def whole(self, told: Json | None, server: ServerClock) -> Receipt | None:
        """The server's receipt with our readings; None where the answer had none that can be read."""
        try:
            receipt = None if told is None else read_receipt(told)
        except ValueError:
            return None
        if receipt is None:
            return None
        self._learn(receipt, server)
        asked = receipt.stamps.get("asked")
        ours = None if asked is None else server.offset(asked.clock, now_ns=self._clock())
        offsets = receipt.offsets if ours is None else (*receipt.offsets, ours)
        return replace(receipt, stamps={**receipt.stamps, **self._stamps}, offsets=offsets)

    def _learn(self, receipt: Receipt, server: ServerClock) -> None:
        """Both ways of this question say how the clocks lie: by its first token, and by its last."""
        asked, read = receipt.stamps.get("asked"), self._stamps.get("read")
        heard: Iterable[tuple[str, int | None]] = (
            ("first_token", self.first_output_ns),
            ("final_token", None if read is None else read.ns),
        )
        for name, heard_ns in heard:
            replied = receipt.stamps.get(name)
            if asked is not None and replied is not None and heard_ns is not None:
                server.exchange(self.sent_ns, asked, replied, heard_ns)
