"""An answer's pieces to a record: stamps by hand, words from real and reported streams."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from vision_bench.bench.chat.reader import AnswerReader
from vision_bench.bench.chat.record import ChatRecord

CASES = json.loads((Path(__file__).parents[3] / "golden" / "wire_cases.json").read_text("utf-8"))["cases"]
EVENTS = {"content-type": "text/event-stream"}
WHOLE = {"content-type": "application/json"}
NDJSON = {"content-type": "application/x-ndjson"}
PARSED_NS = 10_000


def read(
    pieces: list[bytes],
    headers: dict[str, str] = EVENTS,
    *,
    status: int = 200,
    is_whole: bool = True,
    problem: str | None = None,
    **options: Any,
) -> ChatRecord:
    """A record of an answer whose piece number i came at 100 + i ns."""
    record = ChatRecord(step=1, index=0, ordinal=0, due_ns=0)
    reader = AnswerReader(record, now=lambda: PARSED_NS, **options)
    reader.head(status, headers, 50)
    last_ns = 50
    for number, piece in enumerate(pieces):
        if reader.is_finished:
            break
        last_ns = 100 + number
        reader.body(piece, last_ns)
    reader.close(is_whole=is_whole, end_ns=last_ns, problem=problem)
    return record


def pieces_of(case: dict[str, Any]) -> list[bytes]:
    return [base64.b64decode(piece) for piece in case["chunks"]]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_every_wire_case_is_read_as_it_says(case: dict[str, Any]) -> None:
    """Outcome, text, token count, and the piece whose arrival was the first token and the first text."""
    expect = case["expect"]
    record = read(pieces_of(case))
    assert (record.outcome, record.text) == (expect["outcome"], expect["text"])
    if "completion_tokens" in expect:
        assert record.completion_tokens == expect["completion_tokens"]
    if "first_any" in expect:
        assert record.k_ns[0] == 100 + expect["first_any"]
    if "first_text" in expect:
        first_text = expect["first_text"]
        assert record.k1_text_ns == (None if first_text is None else 100 + first_text)
    assert (record.val_ns is not None) == (record.outcome == "ok")
    assert (record.detail is None) == (record.outcome == "ok")


def events(*deltas: dict[str, Any], usage: list[int] | None = None, done: bool = True) -> list[bytes]:
    found = []
    for number, delta in enumerate(deltas):
        chunk: dict[str, Any] = {"choices": [{"index": 0, "delta": delta}]}
        if number == len(deltas) - 1:
            chunk["choices"][0]["finish_reason"] = "stop"
        if usage is not None:
            chunk["usage"] = {"completion_tokens": usage[number]}
        found.append(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    return [*found, b"data: [DONE]\n\n"] if done else found


def test_the_first_event_is_not_the_first_token() -> None:
    """A role alone stamps the first event; reasoning is the first token, text has a stamp of its own."""
    record = read(events({"role": "assistant", "content": ""}, {"reasoning": "hm"}, {"content": "a"}, {"content": "b"}))
    assert (record.rsp_ns, record.first_event_ns) == (50, 100)
    assert record.k_ns == [101, 102, 103]
    assert (record.k1_reasoning_ns, record.k1_text_ns) == (101, 102)
    assert (record.end_ns, record.par_ns, record.val_ns) == (104, PARSED_NS, PARSED_NS)


def test_token_counts_of_every_event_are_kept_where_all_tell_them() -> None:
    """Where some do not, no gap can be divided by them, and none is kept."""
    texts = [{"content": "a b"}, {"content": "c"}]
    assert read(events(*texts, usage=[2, 3])).k_tokens == [2, 3]
    mixed = [*events({"content": "a"}, usage=[1], done=False), *events({"content": "b"})]
    assert read(mixed).k_tokens is None


def test_bytes_behind_an_error_event_do_not_count() -> None:
    """The reason is kept; what came before it is text and no success."""
    record = read([*events({"content": "a"}, done=False)[:1], b'data: {"error": {"message": "boom"}}\n\n'])
    assert (record.outcome, record.detail, record.val_ns) == ("error", "boom", None)


def test_an_answer_cut_by_the_network_says_how() -> None:
    """Truncated, with the system's word and how far it came."""
    cut = [b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n']
    record = read(cut, is_whole=False, problem="ECONNRESET")
    assert record.outcome == "truncated"
    assert record.detail == "the stream ended before its end (ECONNRESET), after 1 events"


def answer(**more: Any) -> bytes:
    message = {"choices": [{"index": 0, "message": {"content": "{}"}, "finish_reason": "stop"}]}
    return json.dumps(
        message | {"model": "qwen", "usage": {"prompt_tokens": 7, "completion_tokens": 2}} | more
    ).encode()


def test_a_whole_answer_has_no_events() -> None:
    """No first token is made up for a target that does not stream; counts and text are there."""
    record = read([answer()[:10], answer()[10:]], WHOLE)
    assert (record.outcome, record.is_streamed, record.k_ns, record.end_ns) == ("ok", False, [], 101)
    assert (record.text, record.model, record.prompt_tokens, record.completion_tokens) == ("{}", "qwen", 7, 2)


def test_what_the_server_tells_of_itself_is_kept() -> None:
    """Server-Timing, per-request metrics, cached and media tokens."""
    usage = {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4, "multimodal_tokens": {"video": 5}}}
    headers = WHOLE | {"server-timing": 'queue;dur=0.5, upstream;desc="x";dur=12, other'}
    record = read([answer(usage=usage, metrics={"queue_time_ms": 1.5, "speculative_decoding": None})], headers)
    assert record.server_ms == {"queue_ms": 0.5, "upstream_ms": 12.0, "queue_time_ms": 1.5}
    assert (record.cached_tokens, record.media_tokens) == (4, {"video": 5})


def test_a_receipt_s_stages_stand_beside_what_server_timing_told() -> None:
    """Both have a queue, and they are not the same: neither is written over. A stage without a number is left out."""
    stages = [{"stage": "queue", "ms": 7.25}, {"stage": "upstream", "ms": 3}, {"stage": "decode", "ms": None}]
    receipt = {"stages": stages, "frames": [{"age_ms": 4.0}], "newest": [{"frame_index": 9}]}
    headers = WHOLE | {"server-timing": "queue;dur=0.5, upstream;dur=12"}
    record = read([answer(vision_bench=receipt)], headers)
    told = {"queue_ms": 0.5, "upstream_ms": 12.0, "receipt_queue_ms": 7.25, "receipt_upstream_ms": 3.0}
    assert record.server_ms == told | {"frame_age_ms": 4.0, "frames": 1.0}
    assert record.receipt is not None
    assert record.receipt["newest"] == [{"frame_index": 9}]


@pytest.mark.parametrize(
    "usage", [None, 3, {"prompt_tokens": "x", "completion_tokens": -1}, {"completion_tokens": True}]
)
def test_usage_that_is_none_is_no_count(usage: Any) -> None:
    """Absent, never 0; the answer is good without."""
    record = read([answer(usage=usage)], WHOLE)
    assert (record.outcome, record.prompt_tokens, record.completion_tokens) == ("ok", None, None)


@pytest.mark.parametrize(
    ("body", "is_whole", "outcome"),
    [
        (b"", True, "truncated"),
        (b'{"choices"', False, "truncated"),
        (b'{"choices"', True, "error"),
        (b"<html>", True, "error"),
        (b'{"error": {"message": "no"}}', True, "error"),
        (b'{"choices": []}', True, "error"),
    ],
)
def test_a_whole_answer_that_is_none(body: bytes, is_whole: bool, outcome: str) -> None:
    """Status 200 alone is no success."""
    record = read([body], WHOLE, is_whole=is_whole)
    assert (record.outcome, record.val_ns) == (outcome, None) and record.detail


def test_an_error_status_keeps_status_and_message() -> None:
    """Whatever the body is; HTTP 503 and 500 stay apart by the status."""
    record = read([b'{"error": {"message": "busy"}}'], WHOLE, status=503)
    assert (record.outcome, record.status, record.detail) == ("http_error", 503, "HTTP 503: busy")
    assert read([b"x" * 10_000], {}, status=500).detail == ("HTTP 500: " + "x" * 10_000)[:300]


def test_no_answer_at_all() -> None:
    """The connection closed before the headers."""
    record = ChatRecord(step=1, index=0, ordinal=0, due_ns=0)
    AnswerReader(record, now=lambda: 0).close(is_whole=False, end_ns=9, problem="ECONNRESET")
    assert (record.outcome, record.detail) == ("truncated", "the connection closed before an answer came (ECONNRESET)")


def test_an_answer_is_held_to_the_schema_inside_the_clock() -> None:
    """Validity is a fact of its own: an answer that breaks the schema came, and counts as ok."""
    good, bad = (read([answer()], WHOLE, is_valid=lambda _, verdict=verdict: verdict) for verdict in (True, False))
    assert (good.outcome, good.is_valid, bad.outcome, bad.is_valid) == ("ok", True, "ok", False)


def line(number: int, **more: Any) -> bytes:
    return json.dumps({"id": str(number), "status": 200, "elapsed_ms": 5} | more).encode() + b"\n"


def test_a_batch_is_ok_when_all_of_its_lines_are() -> None:
    """Each line is stamped when it came, in the order of arrival, and its tokens are counted."""
    body = json.loads(answer())
    record = read([line(1, body=body), line(0, body=body)], NDJSON, batch_size=2)
    assert (record.outcome, record.completion_tokens, record.prompt_tokens) == ("ok", 4, 14)
    assert record.lines is not None
    assert [(one.id, one.line_ns, one.elapsed_ms) for one in record.lines] == [("1", 100, 5), ("0", 101, 5)]


@pytest.mark.parametrize(
    ("second", "outcome"),
    [
        (line(1, status=500, error="boom"), "item_failed"),
        (line(1, body={"choices": []}), "item_failed"),
        (b"garbage\n", "item_failed"),
        (b"", "truncated"),
    ],
)
def test_a_batch_with_a_bad_line_says_which(second: bytes, outcome: str) -> None:
    """The good items' tokens stay known."""
    record = read([line(0, body=json.loads(answer())), second], NDJSON, batch_size=2)
    assert (record.outcome, record.completion_tokens) == (outcome, 2)
    assert record.detail and ("1 of 2" in record.detail)


def test_another_answer_to_a_batch_is_an_error() -> None:
    """A server that does not know batches."""
    assert read([answer()], WHOLE, batch_size=2).outcome == "error"
