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
    """The same two clips ten times over leave the interval of two clips."""
    once, often = AccuracyTally(), AccuracyTally()
    for tally, times in ((once, 1), (often, 10)):
        for _ in range(times):
            tally.add("a", [mark("cuts", True)])
            tally.add("b", [mark("cuts", True)])
    first, second = once.summary(), often.summary()
    assert first is not None and second is not None
    assert first["interval"] == second["interval"] == pytest.approx(wilson_interval(2, 2), abs=1e-6)
    assert second["count"] == 20


def test_facts_that_stand_or_fall_together_count_as_one() -> None:
    """Ten facts in each of ten clips, half of the clips wholly wrong: as wide as ten trials, not a hundred."""
    interval = clustered_interval([(10, 10)] * 5 + [(0, 10)] * 5)
    ten, hundred = wilson_interval(5, 10), wilson_interval(50, 100)
    assert interval is not None and ten is not None and hundred is not None
    assert interval.high - interval.low > 0.95 * (ten.high - ten.low) > hundred.high - hundred.low


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
