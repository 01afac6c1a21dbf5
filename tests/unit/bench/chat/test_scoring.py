"""Records against labels, and what that does to a step's numbers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.bench.chat.made_up import answered, failed

from vision_bench.answers.facts import Fact
from vision_bench.bench.chat.metrics import Tally
from vision_bench.bench.chat.numbers import StepContext
from vision_bench.bench.chat.record import BatchLine, ChatRecord
from vision_bench.bench.chat.scoring import Judged, Scoring
from vision_bench.bench.requests import Window

TEAM = {"a.mp4": [Fact("team", "contains", "Bears")], "b.mp4": [Fact("team", "contains", "Giants")]}


def summary_of(records: list[ChatRecord], scoring: Scoring, **more: Any) -> Any:
    window = Window(start_ns=0, window_ns=int(10e9), is_complete=True, offered_rate=1, due=len(records))
    tally = Tally(StepContext(window, streams=True, scoring=scoring))
    for record in records:
        tally.add(record)
    return tally.summary()


def test_goodput_is_on_time_and_valid_and_right() -> None:
    """Ten answers: one wrong, one invalid though right; eight count."""
    records = [answered(index, due=index * 1000, text="Bears") for index in range(0, 20, 2)]
    records[3].text, records[4].is_valid = "Giants", False
    found = summary_of(records, Scoring(["a.mp4", "b.mp4"], TEAM))
    assert found["goodput"] == pytest.approx(0.8) and found["slo"]["attained"] == 8
    assert (found["accuracy"]["count"], found["accuracy"]["right"]) == (10, 9)


def test_a_request_without_an_answer_got_its_facts_wrong() -> None:
    """Failed, unsent and still running ones are in the denominator, by the item that they stood for."""
    records = [answered(0, text="Bears"), failed(1), failed(2, outcome="unsent"), failed(3, outcome="running")]
    accuracy = summary_of(records, Scoring(["a.mp4", "b.mp4"], TEAM))["accuracy"]
    assert (accuracy["count"], accuracy["right"], accuracy["clips"]) == (4, 1, 2)
    assert accuracy["by_fact"]["team"]["mean_value"] == 1.0  # of the one that answered


def test_an_item_without_labels_is_in_no_number() -> None:
    """Its answers are neither right nor wrong, and good as before."""
    found = summary_of([answered(0, text="x"), answered(1, text="y")], Scoring(["c.mp4"], TEAM))
    assert found["accuracy"] is None and found["slo"]["attained"] == 2


def test_a_batch_is_scored_line_by_line() -> None:
    """Whatever the order of its lines; a line that failed is wrong, and so is the batch."""
    lines = [BatchLine(id="1", line_ns=0, text="Giants"), BatchLine(id="0", line_ns=0, text="Bears")]
    scoring = Scoring(["a.mp4", "b.mp4"], TEAM, batch_size=2)
    found = summary_of([answered(0, lines=lines)], scoring)
    assert (found["accuracy"]["count"], found["accuracy"]["right"], found["slo"]["attained"]) == (2, 2, 1)
    lines[0].error, lines[0].text = "timed out", None
    found = summary_of([answered(0, lines=lines)], scoring)
    assert (found["accuracy"]["count"], found["accuracy"]["right"], found["slo"]["attained"]) == (2, 1, 0)


def test_a_batch_takes_its_items_in_turn() -> None:
    """The second batch of three over two clips begins with the second clip."""
    lines = [BatchLine(id=str(place), line_ns=0, text=text) for place, text in enumerate(("Giants", "Bears", "Giants"))]
    record = answered(1, lines=lines)
    found = list(Scoring(["a.mp4", "b.mp4"], TEAM, batch_size=3).of_record(record))
    assert [one.item for one in found] == ["b.mp4", "a.mp4", "b.mp4"]
    assert all(one.is_correct for one in found)


def test_what_waits_for_a_judge_is_in_no_number() -> None:
    """Until the judge has spoken; an answer that never came needs no judge."""
    facts = {"a.mp4": [Fact("team", "contains", "Bears"), Fact("gist", "judge", "they win")]}
    records = [answered(0, text="Bears"), failed(1)]
    waiting = Scoring(["a.mp4"], facts)
    assert [key for record in records for key, _, _ in waiting.waiting(record)] == [Judged(0, 0, "gist")]
    assert summary_of(records, waiting)["accuracy"]["by_fact"]["gist"]["count"] == 1
    judged = summary_of(records, Scoring(["a.mp4"], facts, verdicts={Judged(0, 0, "gist"): True}))["accuracy"]
    assert (judged["by_fact"]["gist"]["count"], judged["by_fact"]["gist"]["right"]) == (2, 1)


def test_scoring_comes_back_from_a_manifest() -> None:
    """Facts, items and batch size are all it takes; without labels there is none."""
    facts = {
        "items": ["a.mp4", "b.mp4"],
        "batch_size": None,
        "labels": {"name": "x", "facts": {name: [one.as_json() for one in of] for name, of in TEAM.items()}},
    }
    scoring = Scoring.of_manifest(facts)
    assert scoring is not None
    assert [one.is_correct for one in scoring.of_record(answered(1, text="Giants"))] == [True]
    assert Scoring.of_manifest(facts | {"labels": None}) is None
    assert Scoring.of_manifest({"items": []}) is None
