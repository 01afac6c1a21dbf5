"""Limits on one request."""

from __future__ import annotations

import pytest
from tests.unit.bench.chat.made_up import answered, failed

from vision_bench.bench.chat.slo import is_good, read_slo
from vision_bench.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("ttft_ms<101,e2e_ms<121", True),
        ("ttft_ms<100", False),
        ("ttft_ms<=100", True),
        ("ttft_ms < 100.5 , tpot_ms <= 10", True),
        ("max_icl_ms<9", False),
        ("response_ms<120", False),
    ],
)
def test_every_limit_must_be_kept(text: str, good: bool) -> None:
    """Events at 100, 110 and 120 ms."""
    assert is_good(answered(), read_slo(text)) is good


def test_good_is_answered_and_valid_and_within() -> None:
    """A quick failure or a quick answer of the wrong form is not good."""
    limits = read_slo("response_ms<1000")
    assert is_good(answered(), limits) and is_good(answered(), ())
    assert not is_good(failed(), ())
    assert not is_good(answered(is_valid=False), limits)


def test_what_is_not_known_is_not_kept_and_what_cannot_be_is() -> None:
    """No usage: nobody knows the time per token. One token: there is no gap to be too long."""
    limits = read_slo("tpot_ms<1,max_icl_ms<1")
    assert is_good(answered(events=(100,)), limits)
    unknown = answered(events=(100,))
    unknown.completion_tokens = None
    assert not is_good(unknown, limits)
    assert not is_good(answered(events=()), read_slo("ttft_ms<1000")), "a target that does not stream has no TTFT"


@pytest.mark.parametrize(
    "text", ["", "ttft_ms", "ttft<5", "ttft_ms>5", "ttft_ms<x", "ttft_ms<5,,", "ttft_ms<5;e2e_ms<6"]
)
def test_what_is_no_limit_is_refused(text: str) -> None:
    """The message lists the numbers that exist."""
    with pytest.raises(InvalidRequest, match="scheduled_ttft_ms"):
        read_slo(text)


@pytest.mark.parametrize("text", ["ttft_ms<0", "e2e_ms<=0.0"])
def test_a_limit_that_no_answer_keeps_is_refused(text: str) -> None:
    """Otherwise a run would go to its end to say that nothing was good."""
    with pytest.raises(InvalidRequest, match="no answer keeps"):
        read_slo(text)
