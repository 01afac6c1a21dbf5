"""The table of scorers: what a label's value must be, and how one answer is held against one fact.

Scoring an answer is one step; counting and averaging are another (``bench.accuracy``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vision_bench.answers.facts import Fact
from vision_bench.answers.measured import read_measured
from vision_bench.answers.schema import check as check_schema
from vision_bench.answers.schema import validator
from vision_bench.answers.scoring import cer, contains, exact, score_measured_fact, token_f1, wer, within, words
from vision_bench.media.broadcast.wording import latin_words, plain
from vision_bench.wire.shapes import parse_json

JUDGE = "judge"
"""Scorer whose verdict another model gives, after the run (``bench.judge``)."""

F1_LIMIT = 0.8
RATE_LIMIT = 0.2

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,]\d+)?(?!\w|[.,]\d)")
_NOTHING = object()


class Answer:
    """An answer's text and, where it is JSON, its value."""

    __slots__ = ("text", "value")

    def __init__(self, text: str) -> None:
        self.text = text
        self.value: Any = _NOTHING
        if text.lstrip()[:1] in ("{", "["):
            try:
                self.value = parse_json(text)
            except ValueError:
                self.value = _NOTHING

    @property
    def is_json(self) -> bool:
        """It is an object or an array."""
        return self.value is not _NOTHING

    def at(self, field: str | None) -> Any:
        """The value at a dotted place, or the text; None where there is none."""
        if field is None:
            return self.value if self.is_json else self.text
        value = self.value
        for step in field.split("."):
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                return None
        return value

    def text_at(self, field: str | None) -> str | None:
        """Everything that stands at a place, as text: the leaves of a value, a line each."""
        value = self.at(field)
        return None if value is None else "\n".join(_leaves(value))


def _leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in _leaves(one)]
    if isinstance(value, list):
        return [leaf for one in value for leaf in _leaves(one)]
    return [] if value is None else [value if isinstance(value, str) else json.dumps(value)]


@dataclass(frozen=True, slots=True)
class Scorer:
    """One row.

    Attributes:
        score: 0 (wrong) to 1 (right), or an error rate from 0 (right) on. An answer that says nothing is wrong.
        check: raises ValueError for a label's value that it cannot use.
        limit: from where (up to where, for an error rate) a fact counts as right, unless its label says otherwise.
    """

    score: Callable[[Fact, Answer], float]
    check: Callable[[Any], None]
    limit: float = 1.0
    is_error_rate: bool = False


def score(fact: Fact, answer: Answer) -> float:
    """One answer against one fact.

    Raises:
        ValueError: of the scorer ``judge``, which another model is.
    """
    return SCORERS[fact.scorer].score(fact, answer)


def is_right(fact: Fact, value: float) -> bool:
    """Whether a score is good enough for its fact."""
    return value <= fact.limit if SCORERS[fact.scorer].is_error_rate else value >= fact.limit


def is_error_rate(scorer: str) -> bool:
    """Whether lower is better."""
    return SCORERS[scorer].is_error_rate


def default_limit(scorer: str) -> float:
    """Of a label that says none."""
    return SCORERS[scorer].limit


def check_label(scorer: Any, value: Any) -> None:
    """Raises ValueError for a scorer that does not exist, or a value that it cannot use."""
    if not isinstance(scorer, str) or scorer not in SCORERS or scorer == "measured":
        known = ", ".join(name for name in SCORERS if name != "measured")
        raise ValueError(f"no scorer {scorer!r}; known are {known}")
    SCORERS[scorer].check(value)


# --- each scorer


def _exact(fact: Fact, answer: Answer) -> float:
    got = answer.text_at(fact.field)
    return float(got is not None and any(exact(wording, got) for wording in _wordings(fact)))


def _contains(fact: Fact, answer: Answer) -> float:
    return float(contains(answer.text_at(fact.field) or "", _wordings(fact)))


def _wordings(fact: Fact) -> tuple[str, ...]:
    return (str(fact.value), *fact.accept)


def _set_f1(fact: Fact, answer: Answer) -> float:
    got = answer.at(fact.field)
    if isinstance(got, str):
        got = re.split(r"[,;\n]", got)
    read = {plain(leaf) for leaf in _leaves(got)} - {""}
    return _f1([plain(str(one)) for one in fact.value], sorted(read))


def _word_f1(fact: Fact, answer: Answer) -> float:
    return _f1(words(str(fact.value)), words(answer.text_at(fact.field) or ""))


def _f1(expected: Sequence[str], got: Sequence[str]) -> float:
    value = token_f1(expected, got)
    return 1.0 if value is None else value  # nothing was there, and nothing was claimed


def _numeric(fact: Fact, answer: Answer) -> float:
    got = answer.at(fact.field)
    number = got if isinstance(got, int | float) and not isinstance(got, bool) else _only_number(answer, fact)
    return float(within(float(fact.value), number, fact.tolerance))


def _only_number(answer: Answer, fact: Fact) -> float | None:
    """The number of a text; None where it has none, or several different ones: a list of guesses is no answer."""
    text = answer.text_at(fact.field) or ""
    found = {float(number.replace(",", ".")) for number in _NUMBER.findall(text)}
    return found.pop() if len(found) == 1 else None


def _cer(fact: Fact, answer: Answer) -> float:
    return _lowest(cer, fact, answer)


def _wer(fact: Fact, answer: Answer) -> float:
    return _lowest(wer, fact, answer)


def _lowest(rate: Callable[[str, str], float | None], fact: Fact, answer: Answer) -> float:
    got = answer.text_at(fact.field) or ""
    rates = [value for wording in _wordings(fact) if (value := rate(wording, got)) is not None]
    return min(rates, default=1.0)


def _schema(fact: Fact, answer: Answer) -> float:
    return float(answer.is_json and validator(fact.value).is_valid(answer.at(fact.field)))


def _measured(fact: Fact, answer: Answer) -> float:
    name = fact.value["name"]
    got = _measurement(name, answer)
    truth = fact.value
    if isinstance(truth["value"], list) and not truth["value"] and not got:
        return 1.0
    value = score_measured_fact(name, truth, got).value
    return 1.0 if value is None else value


def _measurement(name: str, answer: Answer) -> Any:
    """What the answer measured: a property that bears the name, or the item of the measured line."""
    if isinstance(answer.value, dict):
        fields = answer.value
        if name == "latin_text" and isinstance(texts := fields.get("latin_text", fields.get("texts")), list):
            return latin_words(" ".join(map(str, texts)))
        if name in fields:
            return _of_kind(name, fields[name])
        return read_measured({key: one for key, one in fields.items() if isinstance(one, str)}).get(name)
    return read_measured({"on_screen_text": answer.text}).get(name)


def _of_kind(name: str, value: Any) -> Any:
    """A model may put anything into its answer; what is not of the kind that is compared is no measurement."""
    if name == "shapes":
        counts = value if isinstance(value, dict) else {}
        return {str(key): one for key, one in counts.items() if isinstance(one, int) and not isinstance(one, bool)}
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _judge(fact: Fact, answer: Answer) -> float:
    raise ValueError(f"fact {fact.name!r} is decided by a judge, not by its text")


# --- what their labels must be


def _check_wording(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise ValueError(f"value is {value!r}; give a text or a number that is not empty")


def _check_words(value: Any) -> None:
    _check_wording(value)
    if not words(str(value)):
        raise ValueError(f"value is {value!r}; it has no word")


def _check_set(value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(one, str | int | float) for one in value):
        raise ValueError(f"value is {value!r}; give a list of texts or numbers")


def _check_number(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"value is {value!r}; give a number")


def _check_schema(value: Any) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"value is {type(value).__name__}; give a JSON schema, an object")
    check_schema(value)


def _check_text(value: Any) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"value is {value!r}; give the text that the judge compares with")


def _check_nothing(value: Any) -> None:
    pass


SCORERS: dict[str, Scorer] = {
    "exact": Scorer(_exact, _check_wording),
    "contains": Scorer(_contains, _check_wording),
    "set_f1": Scorer(_set_f1, _check_set, F1_LIMIT),
    "f1": Scorer(_word_f1, _check_words, F1_LIMIT),
    "numeric": Scorer(_numeric, _check_number),
    "cer": Scorer(_cer, _check_words, RATE_LIMIT, is_error_rate=True),
    "wer": Scorer(_wer, _check_words, RATE_LIMIT, is_error_rate=True),
    "schema": Scorer(_schema, _check_schema),
    JUDGE: Scorer(_judge, _check_text),
    "measured": Scorer(_measured, _check_nothing),
}
