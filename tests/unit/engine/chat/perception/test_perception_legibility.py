"""Which letters of a line are believed, on made-up lines."""

from __future__ import annotations

import numpy as np

from vision_bench.engine.chat.perception.legibility import Letter, Reading, Run, ink_runs
from vision_bench.engine.chat.perception.legibility import judge as judge_line


def judge(letters: list[Letter], runs: list[Run]) -> Reading:
    """In a line wide enough that no run lies at its edge."""
    return judge_line(letters, runs, width=200)


def line(*runs: tuple[int, int], width: int = 200, paper: int = 10, ink: int = 240) -> np.ndarray:
    """A line (48, width) with solid letters."""
    luma = np.full((48, width), paper, np.uint8)
    for first, last in runs:
        luma[12:36, first : last + 1] = ink
    return luma


def letters(text: str, *centres: float, confidence: float = 1.0) -> list[Letter]:
    """One letter a centre; spaces stand halfway between their neighbours."""
    places = iter(centres)
    return [Letter(char, confidence, 0.0 if char == " " else next(places)) for char in text]


def test_ink_is_the_rarer_tone() -> None:
    """White on black and black on white give the same runs."""
    runs = [Run(20, 30), Run(40, 60)]
    assert ink_runs(line((20, 30), (40, 60))) == runs
    assert ink_runs(line((20, 30), (40, 60), paper=230, ink=20)) == runs


def test_the_edge_of_a_title_s_paper_is_no_ink() -> None:
    """A frame three pixels wide around the paper is left out."""
    luma = line((20, 30))
    luma[:3] = luma[-3:] = 200
    luma[:, :3] = luma[:, -3:] = 200
    assert ink_runs(luma) == [Run(20, 30)]


def test_tiny_patches_hold_no_ink() -> None:
    """A patch narrower than its rim, and one of a single tone."""
    assert ink_runs(np.zeros((48, 8), np.uint8)) == []
    assert ink_runs(np.full((48, 60), 99, np.uint8)) == []


def test_a_line_that_its_ink_bears_out_is_kept_as_read() -> None:
    """Two words, every run under a letter: the recogniser's own text, spaces and all."""
    runs = [Run(10, 20), Run(24, 34), Run(60, 70)]
    assert judge(letters("AB 3", 15, 29, 65), runs) == Reading("AB 3", has_unread=False)


def test_touching_letters_share_a_run() -> None:
    """Two letters over one run of ink are both borne out."""
    assert judge(letters("AV", 18, 32), [Run(10, 40)]) == Reading("AV", has_unread=False)


def test_a_syllable_taken_for_a_letter_is_dropped() -> None:
    """A zero over the first of three runs that stand close: a piece of Hangul, however sure the recogniser is."""
    runs = [Run(10, 28), Run(32, 36), Run(44, 80)]
    assert judge(letters("0", 19), runs) == Reading("", has_unread=True)


def test_certain_letters_beside_unread_ink_are_kept_from_three_on() -> None:
    """``2026년`` keeps the year; ``4회`` and ``42`` for ``나라`` keep nothing, however sure the recogniser is."""
    year = [Run(10, 20), Run(24, 34), Run(38, 48), Run(52, 62), Run(68, 98)]
    assert judge(letters("2026", 15, 29, 43, 57), year) == Reading("2026…", has_unread=True)
    assert judge(letters("2026", 15, 29, 43, 57, confidence=0.9), year) == Reading("", has_unread=True)
    assert judge(letters("4", 15), [Run(10, 20), Run(26, 56)]) == Reading("", has_unread=True)
    assert judge(letters("42", 15, 41), [Run(10, 20), Run(24, 28), Run(36, 46), Run(50, 54)]).text == ""


def test_pieces_of_syllables_in_a_row_are_not_a_number() -> None:
    """Three certain zeros and ones, each beside a run that nobody read, are Hangul vowels and circles."""
    runs = [Run(10, 20), Run(24, 27), Run(31, 41), Run(45, 48), Run(58, 66)]
    assert judge(letters("010", 15, 25, 36), runs).text == ""


def test_the_paper_s_edge_is_not_unread_writing() -> None:
    """A run at the very end of the line with no letter over it is the edge of a title's paper."""
    runs = [Run(5, 6), Run(20, 30), Run(193, 194)]
    assert judge(letters("A", 25), runs) == Reading("A", has_unread=False)
    assert judge(letters("A", 25), [Run(20, 30), Run(150, 160)]) == Reading("A …", has_unread=True)


def test_an_unread_word_does_not_cost_its_neighbours() -> None:
    """A word without letters between two read ones becomes one mark."""
    runs = [Run(10, 20), Run(60, 90), Run(94, 120), Run(160, 170)]
    assert judge(letters("A B", 15, 165), runs) == Reading("A … B", has_unread=True)


def test_unread_words_in_a_row_are_one_mark() -> None:
    """Three unread words after a read one are one mark; a line of nothing else is empty."""
    runs = [Run(10, 20), Run(60, 80), Run(100, 120), Run(140, 160)]
    assert judge(letters("A", 15), runs) == Reading("A …", has_unread=True)
    assert judge([], runs) == Reading("", has_unread=True)


def test_letters_of_other_scripts_are_not_passed_on() -> None:
    """A Chinese letter for a Hangul syllable is writing that was not read."""
    assert judge(letters("早", 20, confidence=0.98), [Run(10, 30)]) == Reading("", has_unread=True)
    assert judge(letters("9人", 15, 40, confidence=0.99), [Run(10, 20), Run(26, 54)]).text == ""


def test_a_word_that_is_doubtful_throughout_is_dropped() -> None:
    """Each letter over its ink, and none believed: noise that looks like writing."""
    assert judge(letters("abc", 15, 29, 43, confidence=0.4), [Run(10, 20), Run(24, 34), Run(38, 48)]).text == ""


def test_no_ink_is_no_text() -> None:
    """Letters over an empty patch are an illusion, and not unread writing either."""
    assert judge(letters("A", 15), []) == Reading("", has_unread=False)
