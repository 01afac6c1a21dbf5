"""One answer against one fact."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vision_bench.answers.facts import Fact
from vision_bench.answers.scorers import SCORERS, Answer, check_label, default_limit, is_right, score

PITCH = {"team": "Bears", "speed": 148, "colours": ["Red", "blue"], "place": {"city": "Seoul"}, "said": "a b c d"}


def value_of(scorer: str, value: Any, text: str, **more: Any) -> float:
    return score(Fact("it", scorer, value, **more), Answer(text))


@pytest.mark.parametrize(
    ("scorer", "value", "text", "more", "wanted"),
    [
        ("exact", "Bears", " bears ", {}, 1),
        ("exact", "Bears", "the Bears", {}, 0),
        ("exact", "Bears", "the Bears", {"accept": ("the bears",)}, 1),
        ("exact", "148", json.dumps(PITCH), {"field": "speed"}, 1),
        ("contains", "Seoul", json.dumps(PITCH), {"field": "place.city"}, 1),
        ("contains", "Seoul", json.dumps(PITCH), {"field": "team"}, 0),
        (
            "contains",
            "안녕",
            json.dumps({"a": "그는 안녕 했다"}),
            {},
            1,
        ),  # escaped in the JSON, and a word all the same
        ("contains", "blue", json.dumps(PITCH), {"field": "colours.1"}, 1),
        ("contains", "blue", json.dumps(PITCH), {"field": "colours.9"}, 0),
        ("set_f1", ["blue", "red"], json.dumps(PITCH), {"field": "colours"}, 1),
        ("set_f1", ["blue", "red"], "red, green", {}, 0.5),
        ("set_f1", [], "", {}, 1),
        ("set_f1", [], "red", {}, 0),
        ("f1", "top of the fourth", "the fourth", {}, 2 / 3),
        ("numeric", 148, json.dumps(PITCH), {"field": "speed"}, 1),
        ("numeric", 150, json.dumps(PITCH), {"field": "speed", "tolerance": 2}, 1),
        ("numeric", 151, json.dumps(PITCH), {"field": "speed", "tolerance": 2}, 0),
        ("numeric", 148, "It was 148 km/h, 148!", {}, 1),
        ("numeric", 148, "147 or 148", {}, 0),
        ("numeric", 148, "fast", {}, 0),
        ("numeric", 1.5, "1,5 s", {}, 1),
        ("numeric", 1, json.dumps({"n": True}), {"field": "n"}, 0),
        ("wer", "a b c d", json.dumps(PITCH), {"field": "said"}, 0),
        ("wer", "a b c x", json.dumps(PITCH), {"field": "said"}, 0.25),
        ("cer", "가나다라", "가나다", {}, 0.25),
        ("cer", "가나다라", "", {}, 1),
        ("schema", {"type": "object", "required": ["team"]}, json.dumps(PITCH), {}, 1),
        ("schema", {"type": "object", "required": ["nobody"]}, json.dumps(PITCH), {}, 0),
        ("schema", {"type": "object"}, "{broken", {}, 0),
    ],
)
def test_a_scorer_gives_its_value(scorer: str, value: Any, text: str, more: dict[str, Any], wanted: float) -> None:
    """0 to 1 for what is better when higher, an error rate from 0 on for cer and wer."""
    assert value_of(scorer, value, text, **more) == pytest.approx(wanted)


@pytest.mark.parametrize("scorer", [name for name in SCORERS if name not in ("judge", "set_f1", "schema", "measured")])
def test_an_empty_answer_is_right_in_nothing(scorer: str) -> None:
    """Whatever decides."""
    fact = Fact("it", scorer, 5 if scorer == "numeric" else "five", limit=default_limit(scorer))
    assert not is_right(fact, score(fact, Answer("")))


def measured(name: str, value: Any, text: str, **truth: Any) -> float:
    return value_of("measured", {"name": name, "value": value, **truth}, text)


LINE = json.dumps(
    {"summary": "x [measured: cuts 2; black_seconds 1.5; shapes blue=2]", "on_screen_text": '"INNING 4", …'}
)


def test_measurements_are_read_from_the_measured_line_or_from_a_property_of_that_name() -> None:
    """A number with its tolerance, counts by colour, and words."""
    assert measured("cuts", 2, LINE, tolerance=0) == 1
    assert measured("cuts", 3, LINE, tolerance=0) == 0
    assert measured("black_seconds", 2.0, LINE, tolerance=0.6) == 1
    assert measured("beeps", 0, LINE, tolerance=0) == 0  # not told is not measured
    assert measured("shapes", {"blue": 2}, LINE, optional={}) == 1
    assert measured("latin_text", ["4", "INNING"], LINE, optional=[]) == 1
    assert measured("latin_text", [], LINE, optional=[]) == 0
    assert measured("latin_text", [], json.dumps({"texts": []}), optional=[]) == 1
    assert measured("cuts", 2, json.dumps({"cuts": 2}), tolerance=0) == 1
    assert measured("shapes", {"red": 1}, json.dumps({"shapes": {"red": 1}}), optional={}) == 1


@pytest.mark.parametrize("value", ["two", None, [2], True, {"a": 1}])
def test_a_measurement_of_another_kind_is_none(value: Any) -> None:
    """A model may put anything into a field; it is wrong, and no fault of ours."""
    assert measured("cuts", 2, json.dumps({"cuts": value}), tolerance=0) == 0
    assert measured("shapes", {"red": 1}, json.dumps({"shapes": value}), optional={}) == 0


def test_right_is_a_matter_of_the_limit() -> None:
    """From it on; for an error rate, up to it."""
    assert is_right(Fact("it", "f1", "a", limit=0.8), 0.8) and not is_right(Fact("it", "f1", "a", limit=0.8), 0.79)
    assert is_right(Fact("it", "wer", "a", limit=0.2), 0.2) and not is_right(Fact("it", "wer", "a", limit=0.2), 0.21)


@pytest.mark.parametrize(
    ("scorer", "value", "word"),
    [
        ("numeric", "5", "number"),
        ("set_f1", "red", "list"),
        ("schema", {"type": "no such type"}, "no such type"),
        ("wer", "...", "no word"),
        ("exact", "", "empty"),
        ("judge", 3, "judge"),
        ("f2", "a", "no scorer 'f2'"),
        ("measured", {}, "no scorer 'measured'"),
        (None, "a", "no scorer None"),
    ],
)
def test_a_label_that_its_scorer_cannot_use_is_refused(scorer: Any, value: Any, word: str) -> None:
    """With what is wrong."""
    with pytest.raises(ValueError, match=word):
        check_label(scorer, value)
