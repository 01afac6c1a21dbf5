"""wire.chat_stream.StreamReader over upstream byte streams taken from public bug reports (golden/wire_cases.json)."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from vision_bench.wire.chat_stream import StreamReader

CASES = json.loads((Path(__file__).parents[2] / "golden" / "wire_cases.json").read_text("utf-8"))["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_wire_case(case: dict[str, Any]) -> None:
    """Outcome, text, reasoning, token count and the chunk of the first token are the right reading of the stream."""
    reader = StreamReader()
    first_any = first_text = None
    for index, chunk in enumerate(base64.b64decode(chunk) for chunk in case["chunks"]):
        deltas = reader.feed(chunk)
        if deltas and first_any is None:
            first_any = index
        if first_text is None and any(delta.kind == "text" for delta in deltas):
            first_text = index
    reader.close()
    usage = reader.usage or {}
    found = {
        "outcome": reader.outcome,
        "text": reader.text,
        "reasoning": reader.reasoning,
        "tool": reader.tool_arguments,
        "completion_tokens": usage.get("completion_tokens"),
        "first_any": first_any,
        "first_text": first_text,
    }
    expect = case["expect"]
    assert {key: found[key] for key in expect} == expect


def test_all_twenty_eight_cases_are_here() -> None:
    """A case that vanished from the file would pass in silence."""
    assert len(CASES) == 28


def feed(*chunks: bytes) -> StreamReader:
    reader = StreamReader()
    for chunk in chunks:
        reader.feed(chunk)
    reader.close()
    return reader


def test_error_event_keeps_the_upstreams_reason() -> None:
    """The message of the error object is the failure's reason, also when the data is plain text."""
    assert feed(b'data: {"error": {"message": "boom"}}\n\ndata: [DONE]\n\n').error == "boom"
    assert feed(b"event: error\ndata: worker died\n\n").error == "worker died"


def test_done_and_nothing_else_is_truncated() -> None:
    """`[DONE]` without one choice is no answer."""
    assert feed(b"data: [DONE]\n\n").outcome == "truncated"


def test_finished_at_done_before_the_socket_closes() -> None:
    """The reader says when to stop waiting."""
    reader = StreamReader()
    reader.feed(b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}\n\n')
    assert not reader.finished  # a usage chunk may still come
    reader.feed(b"data: [DONE]\n\n")
    assert reader.finished


def test_last_event_without_blank_line_still_counts_if_it_is_whole() -> None:
    """Half an event is let go; a whole one that lost its newlines is read."""
    assert feed(b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}').text == "a"
    assert feed(b'data: {"choices": [{"delta": {"con').outcome == "truncated"


def test_second_choice_is_not_mixed_in() -> None:
    """With n > 1 only choice 0 is read."""
    reader = feed(
        b'data: {"choices": [{"index": 1, "delta": {"content": "B"}}, {"index": 0, "delta": {"content": "A"}}]}\n\n'
    )
    assert reader.text == "A"


def test_older_name_of_the_reasoning_field() -> None:
    """`reasoning_content` was the field's name before vLLM 0.12."""
    assert feed(b'data: {"choices": [{"delta": {"reasoning_content": "r"}}]}\n\n').reasoning == "r"


def test_reply_has_the_shape_of_a_whole_answer() -> None:
    """A streamed answer and a whole one are validated by the same code."""
    reply = feed(
        b'data: {"id": "c", "model": "qwen", "choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]}\n\n',
        b'data: {"choices": [], "usage": {"completion_tokens": 1}}\n\ndata: [DONE]\n\n',
    ).reply()
    assert (reply.text, reply.finish_reason, reply.model, reply.response_id) == ("a", "length", "qwen", "c")
    assert reply.usage == {"completion_tokens": 1}


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_a_stream_that_the_server_gave_up_on_is_an_error(reason: str) -> None:
    """vLLM 0.32 told to stop ends a stream with finish_reason abort and [DONE]: half an answer, not a whole one."""
    last = json.dumps({"choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": reason}]})
    reader = feed(b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n', f"data: {last}\n\n".encode())
    assert (reader.outcome, reader.text) == ("error", "ab")
    assert reason in (reader.error or "")
