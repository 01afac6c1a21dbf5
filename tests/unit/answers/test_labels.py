"""Label files: a user's lines, and a broadcast's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vision_bench.answers.facts import Fact
from vision_bench.answers.labels import read_labels
from vision_bench.errors import InvalidRequest

TEAM = {"item": "a.mp4", "fact": "team", "scorer": "contains", "value": "Bears"}
WINDOW: dict[str, Any] = {
    "clip": "0001_0000-0006",
    "audio_only": [{"fact": "team", "value": "Bears", "accept": ["Bears", "곰"]}],
    "video_only": [
        {"fact": "count", "value": "BALL 1", "accept": ["BALL 1"]},
        {"fact": "count", "value": "BALL 2", "accept": ["BALL 2"]},
    ],
    "speech": [{"text": "good evening", "heard": "full"}, {"text": "cut off", "heard": "part"}],
    "measurable": {
        "audio": {"beeps": {"value": 1, "tolerance": 0}},
        "video": {"cuts": {"value": 1, "tolerance": 0}, "latin_text": {"value": ["BALL"], "optional": []}},
    },
}


def lines(folder: Path, *values: Any) -> Path:
    path = folder / "labels.jsonl"
    path.write_text("\n".join(value if isinstance(value, str) else json.dumps(value) for value in values) + "\n")
    return path


def broadcast(folder: Path) -> Path:
    path = folder / "baseball.labels.json"
    path.write_text(json.dumps({"format": 1, "windows": [WINDOW]}))
    return path


def test_lines_are_facts_of_items(tmp_path: Path) -> None:
    """By the clip's name with or without its ending; ``*`` is every item; a blank line is none."""
    every = {"item": "*", "fact": "form", "scorer": "schema", "value": {"type": "object"}}
    speed = TEAM | {"item": "b", "fact": "speed", "scorer": "numeric", "value": 5, "tolerance": 1, "sense": "picture"}
    facts = read_labels(lines(tmp_path, TEAM, "", every, speed)).of_items(["b.mp4", "a.mp4", "c.mp4"])
    form = Fact("form", "schema", {"type": "object"})
    assert facts == {
        "a.mp4": (Fact("team", "contains", "Bears"), form),
        "b.mp4": (Fact("speed", "numeric", 5, tolerance=1, sense="picture"), form),
        "c.mp4": (form,),
    }


def test_a_fact_comes_back_from_a_manifest(tmp_path: Path) -> None:
    """Through JSON, unchanged, so that an old run can be scored again."""
    line = TEAM | {"field": "a.b", "accept": ["x"], "sense": "sound", "scorer": "wer", "at_most": 0.5}
    (fact,) = read_labels(lines(tmp_path, line)).of_items(["a.mp4"])["a.mp4"]
    assert fact.limit == 0.5 and Fact.from_json(json.loads(json.dumps(fact.as_json()))) == fact


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2"),
        ([1], "JSON object"),
        (TEAM | {"fact": "b", "scorer": "f3"}, "no scorer 'f3'; known are exact"),
        (TEAM | {"fact": "b", "tolerence": 1}, "did you mean 'tolerance'"),
        ({"item": "a", "fact": "b", "scorer": "exact"}, "value is missing"),
        (TEAM | {"fact": "b", "sense": "smell"}, "picture or sound"),
        (TEAM | {"fact": "b", "at_most": 1}, "at_least, not at_most"),
        (TEAM | {"fact": "b", "scorer": "wer", "at_least": 1}, "at_most, not at_least"),
        (TEAM | {"fact": "b", "tolerance": -1}, "0 or more"),
        (TEAM | {"fact": " "}, "not empty"),
        (TEAM | {"fact": "b", "accept": "x"}, "list of wordings"),
        (TEAM, "already"),
    ],
)
def test_a_line_that_is_no_label_is_named(tmp_path: Path, line: Any, words: str) -> None:
    """File, line, key and remedy."""
    with pytest.raises(InvalidRequest, match=words) as problem:
        read_labels(lines(tmp_path, TEAM, line))
    assert "labels.jsonl" in str(problem.value)


def test_labels_that_match_nothing_say_both_sides(tmp_path: Path) -> None:
    """What the file knows, and what is sent."""
    with pytest.raises(InvalidRequest, match=r"labels none of the 2 items .* it knows a, they are called b.mp4, c.mp4"):
        read_labels(lines(tmp_path, TEAM)).of_items(["b.mp4", "c.mp4"])


def test_two_clips_of_one_name_cannot_be_labelled(tmp_path: Path) -> None:
    """Nobody would know which of them a label means."""
    with pytest.raises(InvalidRequest, match="two clips are called a"):
        read_labels(lines(tmp_path, TEAM)).of_items(["a.mp4", "a.mp4"])


def test_missing_and_empty_files_are_told(tmp_path: Path) -> None:
    """Each in one line."""
    with pytest.raises(InvalidRequest, match="No such file"):
        read_labels(tmp_path / "none.jsonl")
    with pytest.raises(InvalidRequest, match="no label"):
        read_labels(lines(tmp_path, ""))


def test_a_broadcast_has_measured_and_said_facts(tmp_path: Path) -> None:
    """With the sense that each needs; two of one name get numbers; only sentences heard whole are asked for."""
    labels = read_labels(broadcast(tmp_path), select=["*"])
    facts = {fact.name: fact for fact in labels.of_items(["0001_0000-0006.mp4"])["0001_0000-0006.mp4"]}
    assert list(facts) == [
        "measured.beeps", "measured.cuts", "measured.latin_text",
        "said.team", "said.count", "said.count_2", "said.speech_cer", "said.speech_wer",
    ]  # fmt: skip
    assert {fact.sense for fact in facts.values()} == {"picture", "sound"}
    assert facts["said.team"].accept == ("Bears", "곰") and facts["said.speech_wer"].value == "good evening"
    assert facts["measured.latin_text"].limit == 0.8 and facts["measured.cuts"].value["name"] == "cuts"


def test_of_a_broadcast_one_says_which_facts(tmp_path: Path) -> None:
    """What a model says and what an engine measures are two sets; a pattern that fits nothing is an error."""
    with pytest.raises(InvalidRequest, match=r'facts = \["measured'):
        read_labels(broadcast(tmp_path))
    some = read_labels(broadcast(tmp_path), select=["measured.*", "!measured.beeps"])
    assert [fact.name for fact in some.facts["0001_0000-0006"]] == ["measured.cuts", "measured.latin_text"]
    with pytest.raises(InvalidRequest, match="called 'measurd"):
        read_labels(broadcast(tmp_path), select=["measurd.*"])
    with pytest.raises(InvalidRequest, match="leave nothing"):
        read_labels(broadcast(tmp_path), select=["said.*", "!*"])
