"""Values of a step by name, kept as they come, given as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from vision_bench.bench.column import column

Json = dict[str, Any]


class Samples:
    """Named values; a name with a slash belongs to the group before it."""

    def __init__(self) -> None:
        self._values: dict[str, array[float]] = {}
        self._censored: dict[str, array[float]] = {}

    def put(self, name: str, value: float | None) -> None:
        """Take a value in; None is no value."""
        if value is not None:
            self._values.setdefault(name, array("d")).append(value)

    def put_all(self, name: str, values: Iterable[float]) -> None:
        """Take several in."""
        self._values.setdefault(name, array("d")).extend(values)

    def put_at_least(self, name: str, value: float) -> None:
        """Take in what a request that still ran had reached by then."""
        self._censored.setdefault(name, array("d")).append(value)

    def of(self, name: str) -> Sequence[float]:
        """The values of a name, without those that are only known as "at least"."""
        return self._values.get(name, array("d"))

    def column(self, name: str) -> Json:
        """As the summary has it."""
        return column(self.of(name), censored=self._censored.get(name, ()))

    def group(self, prefix: str) -> Json:
        """The columns whose names begin with ``prefix``, without it."""
        return {name.removeprefix(prefix): column(v) for name, v in self._values.items() if name.startswith(prefix)}
