"""Which letters of a recognised line are really there.

The recogniser knows Latin letters, digits and Chinese, but no Hangul: it passes over most Hangul syllables and now and
then takes a piece of one for a letter (``이`` for ``0|``). Its confidence does not give that away; the ink does. Every
Latin letter is one unbroken run of columns with ink, so a run with no letter over it is writing that was not read.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LINE_HEIGHT = 48
"""Pixels: the height at which lines are read, and the unit of every distance here."""

UNREAD = "…"
"""Stands in a partly read line for what could not be read."""

KNOWN = frozenset(string.ascii_letters + string.digits + "!#$%&()*+,-./:;<=>?@[]_'\"~")
LOOKALIKES = frozenset("0OoIl1|HECTLUuDJQ")
"""Letters that a piece of a Hangul syllable can be taken for, with confidence."""

LEAST_CONFIDENCE, MEAN_CONFIDENCE = 0.5, 0.8
"""Of a word all of whose ink is accounted for. Measured errors of these: docs/baseline.md."""

SURE, LONG_ENOUGH = 0.95, 3
"""Of letters that stand beside ink that is not accounted for: the confidence that each needs, and how many must stand
together. One or two are as likely to be pieces of syllables (``나라`` gives a certain 42)."""

RIM_ROWS, RIM_COLUMNS = 6, 5
"""Left out when ink is looked for: the detector leaves room around writing, and the edge of a title's paper shows
there."""

WORD_GAP, NEAR = 10, 7
"""Columns without ink between two words; how far a letter's centre may lie from its ink."""


class Letter(NamedTuple):
    """A recognised letter: confidence 0 to 1, and the column of its centre in a line 48 pixels high."""

    char: str
    confidence: float
    centre: float


class Run(NamedTuple):
    """Columns with ink, first and last."""

    first: int
    last: int


class Reading(NamedTuple):
    """What a line says. ``text`` is empty when nothing was read; ``has_unread`` when some writing was not."""

    text: str
    has_unread: bool


def ink_runs(luma: NDArray[np.uint8]) -> list[Run]:
    """Runs of columns that hold ink in a line (48, w): the less common of its two tones, its rim left out."""
    inner = luma[RIM_ROWS : LINE_HEIGHT - RIM_ROWS, RIM_COLUMNS : luma.shape[1] - RIM_COLUMNS]
    if not inner.size:
        return []
    is_ink = inner > _otsu(inner)
    if is_ink.mean() > 0.5:
        is_ink = ~is_ink
    has_ink = np.concatenate([[False], is_ink.sum(axis=0) >= 2, [False]])
    edges = (np.flatnonzero(has_ink[1:] != has_ink[:-1]) + RIM_COLUMNS).tolist()
    return [Run(first, end - 1) for first, end in zip(edges[::2], edges[1::2], strict=True)]


def _otsu(luma: NDArray[np.uint8]) -> int:
    """The threshold that parts the tones best (Otsu 1979)."""
    counts = np.bincount(luma.reshape(-1), minlength=256).astype(np.float64)
    below = np.cumsum(counts)
    above = below[-1] - below
    sums = np.cumsum(counts * np.arange(256))
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = below * above * (sums / below - (sums[-1] - sums) / above) ** 2
    return int(np.nanargmax(np.where((below > 0) & (above > 0), spread, 0.0)))


def judge(letters: Sequence[Letter], runs: Sequence[Run], *, width: int) -> Reading:
    """The line with every letter left out that the ink does not bear out.

    Args:
        letters: as recognised, left to right, spaces included.
        runs: the line's ink.
        width: columns of the line.
    """
    runs = _without_paper(letters, runs, width)
    if not runs:
        return Reading("", has_unread=False)
    words = list(_words([letter for letter in letters if not letter.char.isspace()], runs))
    verdicts = [_judge_word(*word) for word in words]
    if all(is_whole for _, is_whole in verdicts):
        # The recogniser's own spaces are better than ours, which only need to keep scripts apart.
        return Reading("".join(letter.char for letter in letters).strip(), has_unread=False)
    kept = [text for text, _ in verdicts]
    collapsed = [text for index, text in enumerate(kept) if text != UNREAD or kept[index - 1 : index] != [UNREAD]]
    text = " ".join(collapsed)
    return Reading("" if text == UNREAD else text, has_unread=True)


def _without_paper(letters: Sequence[Letter], runs: Sequence[Run], width: int) -> list[Run]:
    """The runs less those at either end that no letter stands over: the edge of a title's paper, which the detector's
    room around the writing took in."""
    kept = list(runs)
    if kept and kept[0].first <= RIM_COLUMNS and not _is_under_a_letter(kept[0], letters):
        kept = kept[1:]
    if kept and kept[-1].last >= width - RIM_COLUMNS - 1 and not _is_under_a_letter(kept[-1], letters):
        kept = kept[:-1]
    return kept


def _is_under_a_letter(run: Run, letters: Sequence[Letter]) -> bool:
    return any(_distance(letter, run) == 0 for letter in letters)


def _words(letters: Sequence[Letter], runs: Sequence[Run]) -> Iterator[tuple[list[Letter], list[Run]]]:
    """Runs with less than a gap between them, and the letters nearest to each such group."""
    groups: list[list[Run]] = []
    for run in runs:
        if groups and run.first - groups[-1][-1].last <= WORD_GAP:
            groups[-1].append(run)
        else:
            groups.append([run])
    owned: list[list[Letter]] = [[] for _ in groups]
    for letter in letters:
        distances = [_distance(letter, Run(group[0].first, group[-1].last)) for group in groups]
        owned[distances.index(min(distances))].append(letter)
    yield from zip(owned, groups, strict=True)


def _distance(letter: Letter, run: Run) -> float:
    return max(run.first - letter.centre, letter.centre - run.last, 0.0)


def _judge_word(letters: list[Letter], runs: list[Run]) -> tuple[str, bool]:
    """The word as far as it can be trusted, and whether that is all of it."""
    accounted = all(any(_distance(letter, run) <= NEAR for letter in letters) for run in runs)
    if accounted and all(letter.char in KNOWN for letter in letters):
        confidences = [letter.confidence for letter in letters]
        if min(confidences) >= LEAST_CONFIDENCE and sum(confidences) / len(confidences) >= MEAN_CONFIDENCE:
            return "".join(letter.char for letter in letters), True
        return UNREAD, False
    marked = "".join(letter.char if _is_sure(letter) else " " for letter in letters)
    kept = [part for part in marked.split() if len(part) >= LONG_ENOUGH and not set(part) <= LOOKALIKES]
    return (UNREAD.join(kept) + UNREAD if kept else UNREAD), False


def _is_sure(letter: Letter) -> bool:
    return letter.char in KNOWN and letter.confidence >= SURE
