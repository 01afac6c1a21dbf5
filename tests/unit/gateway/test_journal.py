"""What a request waited for and called, in words that hold nothing of it."""

from __future__ import annotations

import asyncio

import pytest

from vision_bench.errors import BrokenStream, UpstreamTimeout
from vision_bench.gateway.exchange import ClientLeft
from vision_bench.gateway.journal import Journal, word_of


@pytest.mark.parametrize(
    ("problem", "word"),
    [
        (None, None),
        (BrokenStream("x"), "truncated"),
        (UpstreamTimeout("x"), "upstream_timeout"),
        (ClientLeft(), "client_left"),
        (asyncio.CancelledError(), "cancelled"),
        (GeneratorExit(), "cancelled"),
        (ZeroDivisionError("geheim"), "internal_error"),
    ],
)
def test_a_failure_is_one_word(problem: BaseException | None, word: str | None) -> None:
    """The words of the log and the metrics; never the failure's own text."""
    assert word_of(problem) == word


def test_items_share_a_journal_under_their_own_ids() -> None:
    """In the order in which things happen, each call with a span id and a header of its own."""
    ids = iter([7, 8])
    journal = Journal("a", traceparent=lambda span_id: f"parent-{span_id}", make_span_id=lambda: next(ids))
    first, second = journal.of_item("a-0"), journal.of_item("a-1")
    second.waited("permit", 1, 2, None)
    first.waited("permit", 1, 3, asyncio.CancelledError())
    one = second.call("http://x/v1", 4, resend_count=0)
    two = first.call("http://x/v1", 5, resend_count=1)
    one.end(9, 200, None)
    assert [(wait.request_id, wait.error) for wait in journal.waits] == [("a-1", None), ("a-0", "cancelled")]
    assert journal.calls == [one, two]
    assert (one.traceparent, two.traceparent) == ("parent-7", "parent-8")
    assert (one.began_ns, one.ended_ns, one.status) == (4, 9, 200)
