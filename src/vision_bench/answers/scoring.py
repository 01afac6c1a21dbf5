"""An answer against the labels of its window: exact, contains, F1, numeric, character and word error rate.

Scores are made one by one; averaging them is another step, and takes plain lists. No data is None, never 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jiwer

from vision_bench.media.broadcast.wording import plain, says

Method = Literal["exact", "contains", "f1", "numeric", "cer", "wer"]

ERROR_RATES: frozenset[Method] = frozenset({"cer", "wer"})
"""Methods whose score is better when lower, and may exceed 1."""


@dataclass(frozen=True, slots=True)
class Score:
    """One judged fact.

    ``value`` runs from 0 (wrong) to 1 (right); for ``cer`` and ``wer`` it is an error rate, 0 when right. None: there
    was nothing to judge.
    """

    fact: str
    method: Method
    value: float | None
    expected: Any
    got: Any


def exact(expected: str, got: str) -> bool:
    """Equal once case, width and spacing are set aside."""
    return plain(expected) == plain(got)


def contains(text: str, wordings: Iterable[str]) -> bool:
    """Whether the text says any of the wordings."""
    return any(says(text, wording) for wording in wordings)


def token_f1(expected: Sequence[str], got: Sequence[str]) -> float | None:
    """F1 of two bags of tokens; None when both are empty."""
    if not expected and not got:
        return None
    shared = (Counter(expected) & Counter(got)).total()
    return 2 * shared / (len(expected) + len(got))


def within(expected: float, got: float | None, tolerance: float) -> bool:
    """Whether a number was given and lies no further than ``tolerance`` from the expected one."""
    # The hair's breadth is for sums such as 0.1 + 0.2.
    return got is not None and abs(expected - got) <= tolerance + 1e-9


def cer(expected: str, got: str) -> float | None:
    """Character edits needed, per expected character, spaces left out; None when nothing was expected."""
    reference, reading = plain(expected).replace(" ", ""), plain(got).replace(" ", "")
    return jiwer.cer(reference, reading) if reference else None


def wer(expected: str, got: str) -> float | None:
    """Word edits needed, per expected word, punctuation left out; None when nothing was expected."""
    reference, reading = words(expected), words(got)
    return jiwer.wer(" ".join(reference), " ".join(reading)) if reference else None


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return re.findall(r"\w+", plain(text))


def score_answer(answer: Mapping[str, str], window: Mapping[str, Any]) -> list[Score]:
    """A four-field answer against one window's labels, for models that read and hear.

    Every ``audio_only`` and ``video_only`` fact is looked for in the whole answer (``contains``); the spoken sentences
    heard in full are held against ``speech`` (``cer`` and ``wer``), the texts that stand long enough against
    ``on_screen_text`` (``f1`` of words).
    """
    whole = whole_text(answer)
    scores = [
        Score(f"{sense}.{fact['fact']}", "contains", float(contains(whole, fact["accept"])), fact["accept"], None)
        for sense in ("audio_only", "video_only")
        for fact in window[sense]
    ]
    sentences = " ".join(line["text"] for line in window["speech"] if line["heard"] == "full")
    heard = answer.get("speech", "")
    scores.append(Score("speech", "cer", cer(sentences, heard), sentences, heard))
    scores.append(Score("speech", "wer", wer(sentences, heard), sentences, heard))
    shown = [word for fact in window["video_only"] for word in words(str(fact["value"]))]
    read = words(answer.get("on_screen_text", ""))
    scores.append(Score("on_screen_text", "f1", token_f1(shown, read), shown, read))
    return scores


def whole_text(answer: Mapping[str, str]) -> str:
    """Every field of an answer as one text."""
    return "\n".join(str(value) for value in answer.values())


def score_measured(measured: Mapping[str, Any], window: Mapping[str, Any], *, fps: float | None = None) -> list[Score]:
    """What a perceiver measured against the ``measurable`` facts of one window.

    Args:
        measured: fact name to number, to ``{colour: count}`` for ``shapes``, to words for ``latin_text``. One
            that is missing or None is wrong, not left out.
        fps: frames a second that the perceiver was given. Facts that need more are not asked. None: all frames.
    """
    scores = []
    for sense in ("audio", "video"):
        for name, truth in window["measurable"][sense].items():
            if fps is not None and fps < truth.get("needs_fps", 0):
                continue
            scores.append(score_measured_fact(name, truth, measured.get(name)))
    return scores


def score_measured_fact(name: str, truth: Mapping[str, Any], got: Any) -> Score:
    """One measurement against its truth: a number with its tolerance, counts by colour, or words."""
    expected = truth["value"]
    if isinstance(expected, Mapping):
        return Score(name, "exact", float(got is not None and _counts_agree(truth, got)), expected, got)
    if isinstance(expected, Sequence):
        return Score(name, "f1", _words_f1(truth, got or ()), expected, got)
    return Score(name, "numeric", float(within(expected, got, truth["tolerance"])), expected, got)


def _counts_agree(truth: Mapping[str, Any], got: Mapping[str, int]) -> bool:
    """Every colour seen for long is counted right. What was seen only briefly may be missing, or counted too."""
    expected, optional = truth["value"], truth["optional"]
    return all(
        got.get(colour, 0) in (expected.get(colour, 0), max(expected.get(colour, 0), optional.get(colour, 0)))
        for colour in {*expected, *optional, *got}
    )


def _words_f1(truth: Mapping[str, Any], got: Iterable[str]) -> float | None:
    """F1 of the different words; those that only stood briefly cost nothing, read or not."""
    expected, read = set(truth["value"]), {word.upper() for word in got}
    return token_f1(sorted(expected), sorted(read - (set(truth["optional"]) - expected)))


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are there; None when there are none."""
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def by_fact(scores: Iterable[Score]) -> dict[tuple[str, Method], list[float]]:
    """Values per fact and method, in the order first met, leaving out what could not be judged."""
    grouped: dict[tuple[str, Method], list[float]] = {}
    for score in scores:
        if score.value is not None:
            grouped.setdefault((score.fact, score.method), []).append(score.value)
    return grouped
