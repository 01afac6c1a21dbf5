"""Formulas of docs/metrics.md on records whose stamps are known."""

from __future__ import annotations

import pytest
from tests.unit.bench.chat.made_up import MS, answered

from vision_bench.bench.chat import formulas


def test_the_wait_for_the_first_token_is_no_gap() -> None:
    """Five tokens at 500, 510, 520, 530, 540 ms: a TTFT of 500 and four gaps of 10."""
    record = answered(events=(500, 510, 520, 530, 540))
    assert formulas.ttft_ms(record) == 500
    assert formulas.gaps_ms(record) == [10, 10, 10, 10]
    assert formulas.tpot_ms(record) == 10
    assert formulas.ntpot_ms(record) == 108
    assert formulas.e2e_ms(record) == 540


def test_service_starts_at_the_first_byte_and_scheduled_at_the_due_time() -> None:
    """Due at 0, sent at 30, first event at 100."""
    record = answered(sent=30)
    assert (formulas.ttft_ms(record), formulas.scheduled_ttft_ms(record)) == (70, 100)
    assert (formulas.e2e_ms(record), formulas.response_ms(record)) == (90, 120)
    assert (formulas.wait_ms(record), formulas.lag_ms(record)) == (30, 0)


def test_a_chunk_is_not_a_token() -> None:
    """Twelve tokens in three events: gaps are the events', TPOT is spread over eleven tokens."""
    record = answered(events=(100, 150, 200), tokens=12)
    assert formulas.gaps_ms(record) == [50, 50]
    assert formulas.tpot_ms(record) == pytest.approx(100 / 11)
    assert formulas.itl_ms(record) == [], "per token nothing is known"


def test_usage_in_every_event_gives_times_per_token() -> None:
    """4 tokens, then 2 in 10 ms, then 4 in 40 ms: twice 5 and four times 10; TPOT leaves the first four out."""
    record = answered(events=(100, 110, 150), tokens=10, k_tokens=[4, 6, 10])
    assert formulas.itl_ms(record) == [5, 5, 10, 10, 10, 10]
    assert formulas.tpot_ms(record) == pytest.approx(50 / 6)


def test_an_event_without_a_new_token_belongs_to_the_next_one() -> None:
    """Half a letter is held back: its time is not lost."""
    record = answered(events=(100, 110, 120), tokens=2, k_tokens=[1, 1, 2])
    assert formulas.itl_ms(record) == [20]


def test_as_many_events_as_tokens_are_one_each() -> None:
    """The gaps are the tokens' own."""
    assert formulas.itl_ms(answered(events=(100, 110, 130))) == [10, 20]


@pytest.mark.parametrize(("tokens", "events"), [(None, (100, 110)), (1, (100,)), (2, (100,))])
def test_what_is_not_known_is_none(tokens: int | None, events: tuple[float, ...]) -> None:
    """No usage, a single token, or all tokens in one event: there is no time per token, and it is not 0."""
    record = answered(events=events)
    record.completion_tokens = tokens
    assert formulas.tpot_ms(record) is None


def test_an_answer_in_one_piece_has_no_first_token() -> None:
    """End to end it has, to its last byte."""
    record = answered(events=(), sent=20)
    assert (formulas.ttft_ms(record), formulas.tpot_ms(record), formulas.max_gap_ms(record)) == (None, None, None)
    assert (formulas.e2e_ms(record), formulas.response_ms(record), formulas.full_response_ms(record)) == (81, 101, 81)


def test_a_stall_is_what_exceeds_a_tenth_of_a_second() -> None:
    """Gaps of 10, 400 and 10 ms: 300 of 420."""
    record = answered(events=(100, 110, 510, 520))
    assert formulas.max_gap_ms(record) == 400
    assert formulas.stall_ratio(record) == pytest.approx(300 / 420)
    assert formulas.stall_ratio(answered(events=(100,))) is None


def test_reasoning_comes_before_text() -> None:
    """TTFT is the first token of any kind; the first text has a figure of its own."""
    record = answered(events=(100, 300, 500), k1_reasoning_ns=100 * MS, k1_text_ns=500 * MS)
    assert (formulas.ttft_ms(record), formulas.first_text_ms(record)) == (100, 500)


def test_from_the_decision_to_a_checked_answer() -> None:
    """val - dec, val - due and par - due."""
    record = answered(due=10, sent=12)
    assert formulas.workflow_ms(record) == formulas.validated_ms(record) == 112
    assert formulas.parsed_ms(record) == 111


def test_only_a_new_connection_takes_time_to_make() -> None:
    """con - dsp, where there was something to connect."""
    assert formulas.connect_ms(answered(sent=3)) is None
    assert formulas.connect_ms(answered(sent=3, is_new_connection=True)) == 3
