"""Which envelope, and what its reader must know."""

from __future__ import annotations

import pytest
from tests.unit.bench.envelope.made_up_rows import row

from vision_bench.bench.envelope.choose import choose, flags


def test_the_smallest_that_reaches_the_threshold() -> None:
    """By tokens, then by bytes; a better one that costs more is not chosen."""
    rows = [row(0.5, tokens=10), row(0.9, tokens=30, sent=9), row(0.9, tokens=30, sent=8), row(1.0, tokens=40)]
    assert choose(rows, 0.9) == [rows[2]]
    assert choose(rows, 0.95) == [rows[3]] and choose(rows[:3], 0.95) == []


def test_to_be_sure_the_interval_must_reach_it() -> None:
    """Its lower end, which lies a tenth below here."""
    rows = [row(0.95, tokens=10), row(1.0, tokens=20)]
    assert choose(rows, 0.9) == [rows[0]] and choose(rows, 0.9, is_sure=True) == [rows[1]]


def test_each_model_has_a_choice_of_its_own() -> None:
    """Their tokens are not the same tokens."""
    rows = [row(0.9, tokens=10, model="a"), row(0.95, tokens=5, model="b"), row(0.1, tokens=1, model="c")]
    assert choose(rows, 0.9) == rows[:2]


def test_what_has_not_run_whole_or_has_no_labels_is_never_chosen() -> None:
    """However good it looks."""
    assert choose([row(1.0, is_complete=False), row(1.0, accuracy=None)], 0.5) == []


def test_without_token_counts_bytes_decide() -> None:
    """And the reader is told."""
    rows = [row(0.9, tokens=None, sent=20, fps=2.0), row(0.9, tokens=None, sent=10, fps=1.0)]
    assert choose(rows, 0.9) == [rows[1]]
    assert any("tells no prompt tokens" in text for text in flags(rows))


def test_an_axis_that_does_not_change_the_tokens_is_flagged() -> None:
    """fps that the server did not heed; not when it moves them in one of two sizes."""
    same = [row(0.9, tokens=10 + height, height=height, fps=fps) for height in (120, 240) for fps in (1.0, 2.0)]
    assert [text for text in flags(same) if text.startswith("fps does not")] == [flags(same)[0]]
    assert not any(text.startswith("height") for text in flags(same))
    same[3]["prompt_tokens"] = 999
    assert flags(same) == []


@pytest.mark.parametrize("key", ["use_audio", "seconds"])
def test_the_same_holds_for_every_axis(key: str) -> None:
    """Sound that costs no tokens was not taken."""
    rows = [row(0.9, tokens=10), row(0.9, tokens=10, **{key: 3.0 if key == "seconds" else True})]
    assert flags(rows)[0].startswith(f"{key} does not change")


def test_requests_that_were_the_same_are_flagged() -> None:
    """More lines were asked for than the clips have."""
    rows = [row(0.9, tokens=10, height=360, bodies=["x"]), row(0.9, tokens=20, height=480, bodies=["x"])]
    assert flags(rows) == ["height 360 and height 480 sent the very same requests: the clips hold no more"]


def test_failures_and_missing_parts_are_flagged() -> None:
    """They count as wrong, and the reader should know why."""
    told = flags([row(0.5, requests={"due": 10, "ok": 7, "failed": 3}, is_complete=False, fps=1.0)])
    assert told == ["fps 1.0: 3 of 10 requests failed and count as wrong", "fps 1.0: not all of it has run"]
