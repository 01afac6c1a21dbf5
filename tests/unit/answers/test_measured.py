"""Reading the baseline's measurements back."""

from __future__ import annotations

from vision_bench.answers.measured import read_measured

ANSWER = {
    "scene": "A dark picture.",
    "on_screen_text": 'Read: "BEARS 2 : 0 LIONS"; "OUT 2"; 1 place holds writing that was not read.',
    "summary": "Picture with motion. [measured: black_seconds 2.3; cuts 1; shapes blue=2 red=3; loudness_dbfs -20.5]",
}


def test_numbers_counts_and_words_come_back() -> None:
    """Whole numbers as int, others as float, shapes as colour to count, quoted texts as different words."""
    assert read_measured(ANSWER) == {
        "black_seconds": 2.3,
        "cuts": 1,
        "shapes": {"blue": 2, "red": 3},
        "loudness_dbfs": -20.5,
        "latin_text": ["0", "2", "BEARS", "LIONS", "OUT"],
    }


def test_none_is_an_empty_count() -> None:
    """``shapes none`` was measured and is empty."""
    assert read_measured({"summary": "[measured: shapes none]"})["shapes"] == {}


def test_an_answer_without_the_line_measured_nothing() -> None:
    """A language model's prose is no measurement, whatever numbers stand in it."""
    assert read_measured({"summary": "cuts 1; shapes red=3", "on_screen_text": '"LIVE"'}) == {}
