"""A fact: one thing that an answer has to get right, and the scorer that decides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Json = dict[str, Any]
Sense = Literal["picture", "sound"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that an answer has to get right.

    Attributes:
        name: the same thing has the same name in every item; results are gathered by it.
        scorer: of ``scorers.SCORERS``.
        value: what is true, in the form that the scorer takes.
        field: where in a JSON answer it stands, as ``place.city`` or ``teams.0``; None is the whole answer.
        accept: further wordings that count, for scorers of words.
        tolerance: of numbers, to both sides.
        limit: the scorer's value from which the fact counts as right; up to which, for error rates.
        sense: what it takes to know it; None where that is not told. The controls rest on it.
    """

    name: str
    scorer: str
    value: Any
    field: str | None = None
    accept: tuple[str, ...] = ()
    tolerance: float = 0.0
    limit: float = 1.0
    sense: Sense | None = None

    def as_json(self) -> Json:
        """For a manifest: what is not said has its default."""
        kept: Json = {"name": self.name, "scorer": self.scorer, "value": self.value, "limit": self.limit}
        more = {"field": self.field, "accept": list(self.accept), "tolerance": self.tolerance, "sense": self.sense}
        return kept | {name: value for name, value in more.items() if value}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Fact:
        """What ``as_json`` gave."""
        return cls(**{**kept, "accept": tuple(kept.get("accept", ()))})
