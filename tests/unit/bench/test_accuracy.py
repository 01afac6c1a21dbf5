"""Facts to shares and intervals."""

from __future__ import annotations

import pytest

from vision_bench.bench.accuracy import AccuracyTally, Mark, Pairing, clustered_interval, pair
from vision_bench.stats import wilson_interval


def mark(fact: str, is_right: bool, sense: str | None = None) -> Mark:
    return Mark(fact, "exact", float(is_right), is_right, sense)


def test_shares_over_facts_and_over_answers() -> None:
    """Three of four facts; one of two answers is right as a whole; each fact and each sense by itself."""
    tally = AccuracyTally()
    tally.add("a", [mark("cuts", True, "picture"), mark("beeps", True, "sound")])
    tally.add("b", [mark("cuts", True, "picture"), Mark("beeps", "exact", None, False, "sound")])
    summary = tally.summary()
    assert summary is not None
    assert (summary["count"], summary["right"], summary["share"], summary["clips"]) == (4, 3, 0.75, 2)
    assert (summary["answers"]["count"], summary["answers"]["right"]) == (2, 1)
    assert summary["by_fact"]["beeps"] | {"interval": 0} == {
        "scorer": "exact", "count": 2, "right": 1, "share": 0.5, "interval": 0, "mean_value": 1.0,
    }  # fmt: skip
    assert summary["by_sense"]["picture"]["share"] == 1.0 and summary["by_sense"]["sound"]["share"] == 0.5


def test_nothing_asked_is_no_accuracy() -> None:
    """None, not 0."""
    assert AccuracyTally().summary() is None
    assert clustered_interval([]) is None


def test_a_clip_sent_again_proves_nothing_new() -> None:
    """The same clips ten times over leave the interval of once, for facts, answers and senses."""
    once, often = AccuracyTally(), AccuracyTally()
    for tally, times in ((once, 1), (often, 10)):
        for _ in range(times):
            for clip in "abcdef":
                tally.add(clip, [mark("cuts", clip != "a", "picture"), mark("beeps", True, "sound")])
    first, second = once.summary(), often.summary()
    assert first is not None and second is not None
    assert (first["count"], second["count"]) == (12, 120)
    for of in (
        lambda it: it,
        lambda it: it["answers"],
        lambda it: it["by_fact"]["cuts"],
        lambda it: it["by_sense"]["sound"],
    ):
        assert of(first)["interval"] == of(second)["interval"]
        assert of(first)["share"] == of(second)["share"]


def test_no_mistake_is_no_less_certain_than_one() -> None:
    """Ten clips of eight facts: the interval's lower end stays where it is, to a hundredth, when one fact is lost."""
    none, one = clustered_interval([(8, 8)] * 10), clustered_interval([(7, 8)] + [(8, 8)] * 9)
    assert none is not None and one is not None and none.low > one.low - 0.01
    alone = clustered_interval([(1, 1)] * 12)
    assert alone == pytest.approx(wilson_interval(12, 12))  # facts of different clips are what they are


def test_facts_that_stand_or_fall_together_count_as_one() -> None:
    """Ten facts in each of ten clips, half of the clips wholly wrong: as wide as ten trials, not a hundred."""
    interval = clustered_interval([(10, 10)] * 5 + [(0, 10)] * 5)
    ten, hundred = wilson_interval(5, 10), wilson_interval(50, 100)
    assert interval is not None and ten is not None and hundred is not None
    assert interval.high - interval.low > 0.9 * (ten.high - ten.low) > 2 * (hundred.high - hundred.low)


def test_facts_that_do_not_are_as_many_as_they_are() -> None:
    """Clips that vary no more than chance leave the plain interval, and never a narrower one."""
    plain = wilson_interval(60, 120)
    interval = clustered_interval([(0, 2)] * 15 + [(1, 2)] * 30 + [(2, 2)] * 15)
    assert plain is not None and interval is not None
    assert plain.low - 0.01 <= interval.low <= plain.low + 0.01


def test_one_clip_is_one_trial() -> None:
    """However many facts it has."""
    assert clustered_interval([(9, 10)]) == wilson_interval(0.9, 1)


def test_pairing_counts_what_both_arms_were_asked() -> None:
    """A key that one lacks is in no count."""
    first = {1: True, 2: True, 3: False, 4: False, 5: True}
    assert pair(first, {1: True, 2: False, 3: True, 4: False, 6: True}) == Pairing(1, 1, 1, 1)
