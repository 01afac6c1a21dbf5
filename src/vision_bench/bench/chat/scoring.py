"""A record's answers against what is known of the items that were sent. Done behind the clock, from what was kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from vision_bench.answers.facts import Fact
from vision_bench.answers.scorers import JUDGE, Answer, is_right, score
from vision_bench.bench.accuracy import Mark
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.record import OK

Json = dict[str, Any]

MAX_REMEMBERED = 4096
"""Answers whose marks are kept: a clip that is sent again often gets the same words."""


class Scored(NamedTuple):
    """One answer: what it was about, its text (None where there is none), its marks."""

    item: str
    text: str | None
    marks: tuple[Mark, ...]

    @property
    def is_correct(self) -> bool:
        """Every fact is right."""
        return all(mark.is_right for mark in self.marks)


class Judged(NamedTuple):
    """What a judge decided about: the request, the place in its batch, the fact."""

    ordinal: int
    place: int
    fact: str


class Scoring:
    """What the answers of one run are held to.

    Args:
        items: what is sent, in turn: the request with ordinal n sends ``items[n % len(items)]``.
        facts: by item; an item without any is not judged.
        batch_size: items in one request; None sends single chats.
        verdicts: a judge's, where there has been one. A fact that waits for its judge is in no number.
    """

    def __init__(
        self,
        items: Sequence[str],
        facts: Mapping[str, Sequence[Fact]],
        *,
        batch_size: int | None = None,
        verdicts: Mapping[Judged, bool] | None = None,
    ) -> None:
        self._items = items
        self._facts = facts
        self._batch_size = batch_size
        self._verdicts = verdicts or {}
        self._remembered: dict[tuple[str, str], tuple[Mark, ...]] = {}

    @classmethod
    def of_manifest(cls, facts: Mapping[str, Any], verdicts: Mapping[Judged, bool] | None = None) -> Scoring | None:
        """From the workload's part of a manifest; None for a workload without labels."""
        labels = facts.get("labels")
        if labels is None:
            return None
        by_item = {item: [Fact.from_json(one) for one in kept] for item, kept in labels["facts"].items()}
        return cls(facts["items"], by_item, batch_size=facts["batch_size"], verdicts=verdicts)

    @property
    def wants_judge(self) -> bool:
        """Some fact is for a judge to decide."""
        return any(fact.scorer == JUDGE for facts in self._facts.values() for fact in facts)

    def of_record(self, record: ChatRecord) -> Iterator[Scored]:
        """Every labelled answer that was due with it, whatever became of the request."""
        for place, text in self._texts(record):
            item = self._items[(record.ordinal * (self._batch_size or 1) + place) % len(self._items)]
            facts = self._facts.get(item)
            if facts:
                marks = self._marks(item, facts, text)
                yield Scored(item, text, marks + self._judged(record.ordinal, place, facts, text))

    def waiting(self, record: ChatRecord) -> Iterator[tuple[Judged, Fact, str]]:
        """What a judge has to decide of it: the fact and the answer."""
        for place, text in self._texts(record):
            item = self._items[(record.ordinal * (self._batch_size or 1) + place) % len(self._items)]
            for fact in self._facts.get(item, ()):
                key = Judged(record.ordinal, place, fact.name)
                if fact.scorer == JUDGE and text is not None and key not in self._verdicts:
                    yield key, fact, text

    def _texts(self, record: ChatRecord) -> Iterator[tuple[int, str | None]]:
        if self._batch_size is None:
            yield 0, record.text or "" if record.outcome == OK else None
            return
        came = {line.id: line.text for line in record.lines or () if line.error is None}
        for place in range(self._batch_size):
            yield place, came.get(str(place))

    def _marks(self, item: str, facts: Sequence[Fact], text: str | None) -> tuple[Mark, ...]:
        if text is None:
            return tuple(_mark(fact, None) for fact in facts if fact.scorer != JUDGE)
        marks = self._remembered.get((item, text))
        if marks is None:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            answer = Answer(text)
            marks = tuple(_mark(fact, score(fact, answer)) for fact in facts if fact.scorer != JUDGE)
            self._remembered[item, text] = marks
        return marks

    def _judged(self, ordinal: int, place: int, facts: Sequence[Fact], text: str | None) -> tuple[Mark, ...]:
        marks = []
        for fact in facts:
            if fact.scorer == JUDGE:
                verdict = False if text is None else self._verdicts.get(Judged(ordinal, place, fact.name))
                if verdict is not None:
                    marks.append(_mark(fact, None if text is None else float(verdict)))
        return tuple(marks)


def _mark(fact: Fact, value: float | None) -> Mark:
    return Mark(fact.name, fact.scorer, value, value is not None and is_right(fact, value), fact.sense)
