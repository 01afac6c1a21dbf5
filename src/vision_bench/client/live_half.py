"""The client's half of a receipt: its own readings."""

from __future__ import annotations

from collections.abc import Callable

from vision_bench.live.joining import ServerClock, join
from vision_bench.live.receipt import Receipt, read_receipt
from vision_bench.wire.chat import Json


class ClientHalf:
    """The readings of one question, in the order in which they are taken.

    Args:
        clock: monotonic, ns.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.decided_ns = clock()
        self.sent_ns = self.decided_ns
        self.tries = 0
        self.first_output_ns: int | None = None
        self._readings = {"decided": self.decided_ns}

    def sent(self) -> None:
        """The question goes out; again, when it is retried. The time between is within the stage ``request``."""
        self.sent_ns = self._clock()
        self.tries += 1

    def stamp(self, name: str, at_ns: int | None) -> None:
        """A reading that was taken at ``at_ns``; None leaves it out."""
        if at_ns is not None:
            self._readings[name] = at_ns

    def whole(self, told: Json | None, server: ServerClock) -> Receipt | None:
        """The server's receipt with our readings; None where the answer had none that can be read."""
        try:
            receipt = None if told is None else read_receipt(told)
        except ValueError:
            return None
        if receipt is None:
            return None
        return join(
            receipt,
            self._readings,
            server,
            sent_ns=self.sent_ns,
            first_output_ns=self.first_output_ns,
            now_ns=self._clock(),
        )
