"""Stop strings over text that comes in pieces, holding back what could be the start of one."""

from __future__ import annotations

from typing import NamedTuple


class Released(NamedTuple):
    """Text that may leave now, and the stop string that ended the answer, if one did."""

    text: str
    stopped_by: str | None = None


class StopFilter:
    """vLLM's rule: the longest stop string's length less one is always held back; the stop string is left out."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._hold = max((len(stop) for stop in stops), default=1) - 1
        self._held = ""

    def feed(self, text: str, *, is_last: bool = False) -> Released:
        """Add a piece. With ``is_last`` nothing is held back any more."""
        self._held += text
        matches = [(self._held.find(stop), stop) for stop in self._stops if stop in self._held]
        if matches:
            at, stop = min(matches)
            return Released(self._take(at), stop)
        return Released(self._take(len(self._held) if is_last else max(0, len(self._held) - self._hold)))

    def _take(self, count: int) -> str:
        text, self._held = self._held[:count], self._held[count:]
        return text
