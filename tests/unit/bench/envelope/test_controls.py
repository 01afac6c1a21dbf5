"""Blackout and mute: what must be lost, and what must stay."""

from __future__ import annotations

import pytest

from vision_bench.bench.envelope.controls import Outcomes, judge_control


def arm(picture: str, sound: str) -> Outcomes:
    """Facts of each sense, a letter each: ``+`` right, ``-`` wrong."""
    facts = [*((f"p{place}", mark, "picture") for place, mark in enumerate(picture))]
    facts += [(f"s{place}", mark, "sound") for place, mark in enumerate(sound)]
    return {(0, name): (mark == "+", sense) for name, mark, sense in facts}


NORMAL = arm("++++++++", "++++++++")


@pytest.mark.parametrize(
    ("control", "found", "verdict"),
    [
        ("blackout", arm("--------", "++++++++"), "PASS"),
        ("muted", arm("++++++++", "------++"), "PASS"),
        ("blackout", arm("++++++++", "++++++++"), "FAIL"),  # the picture is not used
        ("muted", arm("++++++++", "++++++++"), "FAIL"),  # the sound is not used
        ("blackout", arm("--------", "--------"), "FAIL"),  # the sound went too
        ("muted", arm("--------", "--------"), "FAIL"),
        ("blackout", arm("++++++--", "++++++++"), "UNDETERMINED"),  # two lost may be chance
    ],
)
def test_verdicts(control: str, found: Outcomes, verdict: str) -> None:
    """A sense that was taken away takes its facts with it, and no others."""
    assert judge_control(control, NORMAL, found)["verdict"] == verdict


def test_few_facts_prove_nothing() -> None:
    """Five right facts lost are within chance at 5 %; nothing right at the start cannot be lost."""
    few = judge_control("blackout", arm("+++++", ""), arm("-----", ""))
    assert few["verdict"] == "UNDETERMINED" and few["senses"]["picture"]["lost"] == 5
    assert judge_control("blackout", arm("-----", "++"), arm("-----", "++"))["verdict"] == "UNDETERMINED"


def test_labels_without_a_sense_cannot_be_judged() -> None:
    """The remedy is in the reason."""
    plain: Outcomes = {(0, "a"): (True, None)}
    judged = judge_control("muted", plain, plain)
    assert judged["verdict"] == "UNDETERMINED" and "give labels a sense" in judged["reason"]
