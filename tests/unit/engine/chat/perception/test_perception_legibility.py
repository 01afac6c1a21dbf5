"""Which letters of a line are believed, on made-up lines."""

from __future__ import annotations

import numpy as np

from vision_bench.engine.chat.perception.legibility import Letter, Reading, Run, ink_runs, judge


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


def test_a_digit_before_a_syllable_is_kept() -> None:
    """``4회``: the 4 is certain and no piece of a syllable looks like it; what follows is marked unread."""
    runs = [Run(10, 24), Run(30, 60)]
    assert judge(letters("4", 17), runs) == Reading("4…", has_unread=True)
    assert judge(letters("4", 17, confidence=0.8), runs) == Reading("", has_unread=True)


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
    assert judge(letters("9人", 15, 40, confidence=0.99), [Run(10, 20), Run(26, 54)]).text == "9…"


def test_a_word_that_is_doubtful_throughout_is_dropped() -> None:
    """Each letter over its ink, and none believed: noise that looks like writing."""
    assert judge(letters("abc", 15, 29, 43, confidence=0.4), [Run(10, 20), Run(24, 34), Run(38, 48)]).text == ""


def test_no_ink_is_no_text() -> None:
    """Letters over an empty patch are an illusion, and not unread writing either."""
    assert judge(letters("A", 15), []) == Reading("", has_unread=False)
