"""Judging answers against labels."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.answers.scoring import (
    by_fact,
    cer,
    contains,
    exact,
    mean,
    score_answer,
    score_measured,
    token_f1,
    wer,
    within,
)

WINDOW: dict[str, Any] = {
    "clip": "0001_0000-0006",
    "speech": [
        {"text": "구속 백이십오 킬로미터!", "heard": "full"},
        {"text": "여기는 반만 들립니다.", "heard": "part"},
    ],
    "audio_only": [{"fact": "pitch_kmh", "value": 125, "accept": ["125킬로미터", "백이십오킬로미터"]}],
    "video_only": [{"fact": "scoreboard", "value": "BEARS 1 : 0 LIONS", "accept": ["BEARS 1 : 0 LIONS"]}],
    "measurable": {
        "audio": {
            "beeps": {"value": 2, "tolerance": 0},
            "speech_seconds": {"value": 2.1, "tolerance": 1.0},
        },
        "video": {
            "flashes": {"value": 1, "tolerance": 0, "needs_fps": 12},
            "shapes": {"value": {"red": 3}, "optional": {"blue": 2}},
            "latin_text": {"value": ["0", "1", "BEARS", "LIONS"], "optional": ["OUT"]},
        },
    },
}


def test_exact_sets_case_width_and_spacing_aside() -> None:
    """Full-width and upper case letters are the same letters; another word is another word."""
    assert exact("Bears  1", "ＢＥＡＲＳ 1")
    assert not exact("Bears 1", "Bears 2")


def test_contains_takes_any_wording() -> None:
    """One of the accepted wordings is enough; none is not."""
    assert contains("시속 백이십오 킬로미터", ["125킬로미터", "백이십오킬로미터"])
    assert not contains("시속 백이십 킬로미터", ["125킬로미터", "백이십오킬로미터"])
    assert not contains("anything", [])


@pytest.mark.parametrize(
    ("expected", "got", "f1"),
    [
        (["a", "b"], ["a", "b"], 1.0),
        (["a", "b"], ["b", "c"], 0.5),
        (["a", "a"], ["a"], 2 / 3),
        (["a"], [], 0.0),
        ([], ["a"], 0.0),
        ([], [], None),
    ],
)
def test_f1_counts_each_token_as_often_as_it_stands(expected: list[str], got: list[str], f1: float | None) -> None:
    """2 x shared / (expected + got); with nothing on either side there is nothing to judge."""
    assert token_f1(expected, got) == f1


def test_a_number_is_right_within_its_tolerance() -> None:
    """The bound itself is inside, float dust included; no number is wrong, not skipped."""
    assert within(0.3, 0.1 + 0.2, 0)
    assert within(2, 3.0, 1.0)
    assert not within(2, 3.1, 1.0)
    assert not within(0, None, 1.0)


def test_error_rates_are_per_expected_unit() -> None:
    """One wrong letter of five is 0.2; one wrong word of two is 0.5; extra words may push a rate above 1."""
    assert cer("가나다라마", "가나다라바") == pytest.approx(0.2)
    assert cer("가 나", "가나") == 0
    assert wer("good evening!", "Good morning") == pytest.approx(0.5)
    assert wer("hello", "oh well hello there") == 3


def test_nothing_expected_is_no_rate() -> None:
    """No sentence to hear: None, not 0."""
    assert cer("", "noise") is None
    assert wer(" ", "noise") is None


def test_a_perfect_answer_scores_full() -> None:
    """Facts said, sentence and text verbatim: contains 1, error rates 0, F1 1. Half-heard sentences are not asked."""
    answer = {"speech": "구속 백이십오 킬로미터", "on_screen_text": "BEARS 1:0 LIONS", "scene": "", "summary": ""}
    values = {(score.fact, score.method): score.value for score in score_answer(answer, WINDOW)}
    assert values == {
        ("audio_only.pitch_kmh", "contains"): 1.0,
        ("video_only.scoreboard", "contains"): 1.0,
        ("speech", "cer"): pytest.approx(1 / 11),  # the exclamation mark
        ("speech", "wer"): 0.0,
        ("on_screen_text", "f1"): 1.0,
    }


def test_an_empty_answer_scores_nothing() -> None:
    """Every fact 0, every error rate 1."""
    values = {(score.fact, score.method): score.value for score in score_answer({}, WINDOW)}
    assert values == {
        ("audio_only.pitch_kmh", "contains"): 0.0,
        ("video_only.scoreboard", "contains"): 0.0,
        ("speech", "cer"): 1.0,
        ("speech", "wer"): 1.0,
        ("on_screen_text", "f1"): 0.0,
    }


def _measured(**facts: Any) -> dict[str, float | None]:
    return {score.fact: score.value for score in score_measured(facts, WINDOW)}


def test_true_measurements_score_full() -> None:
    """Counts exact, seconds within the labels' tolerance, shapes by colour, words in any order and case."""
    full = _measured(
        beeps=2,
        speech_seconds=2.9,
        flashes=1,
        shapes={"red": 3},
        latin_text=["lions", "0", "1", "Bears"],
    )
    assert full == dict.fromkeys(("beeps", "speech_seconds", "flashes", "shapes", "latin_text"), 1.0)


def test_what_was_seen_only_briefly_may_be_missing_or_there() -> None:
    """It is forgiven either way; a colour that was never shown is not, nor is an extra word."""
    assert _measured(shapes={"red": 3, "blue": 2})["shapes"] == 1
    assert _measured(shapes={"red": 3, "green": 1})["shapes"] == 0
    assert _measured(latin_text=["0", "1", "BEARS", "LIONS", "OUT"])["latin_text"] == 1
    assert _measured(latin_text=["0", "1", "BEARS", "LIONS", "TIGERS"])["latin_text"] == pytest.approx(8 / 9)


def test_a_fact_that_was_not_measured_is_wrong() -> None:
    """Silence about a fact does not improve the mean."""
    assert set(_measured().values()) == {0.0}


def test_facts_that_need_more_frames_are_not_asked() -> None:
    """At 2 frames a second nobody is asked to count flashes of 0.1 s; at 12 they are."""
    slow = score_measured({}, WINDOW, fps=2.0)
    assert "flashes" not in {score.fact for score in slow}
    assert "flashes" in {score.fact for score in score_measured({}, WINDOW, fps=12.0)}


def test_no_values_have_no_mean() -> None:
    """None among values is left out; nothing left is None."""
    assert mean([1.0, None, 0.0]) == 0.5
    assert mean([None]) is None
    assert mean([]) is None


def test_scores_gather_by_fact() -> None:
    """Values per fact and method, without those that could not be judged."""
    grouped = by_fact([*score_answer({}, WINDOW), *score_answer({}, {**WINDOW, "speech": []})])
    assert grouped["speech", "cer"] == [1.0]
    assert grouped["audio_only.pitch_kmh", "contains"] == [0.0, 0.0]
