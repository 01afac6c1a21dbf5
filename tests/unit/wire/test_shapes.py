"""wire.shapes: odd JSON is refused in words, never by an exception of another kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vision_bench.wire import chat, chat_stream, ndjson
from vision_bench.wire.shapes import MAX_DEPTH, parse_json

DEEP: Any = "end"
for _ in range(5000):
    DEEP = [DEEP]


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 2000 + "]" * 2000, '{"a":' * 70 + "1" + "}" * 70])
def test_json_too_deep_to_walk_is_not_json(text: str) -> None:
    """Whether Python's parser would give up on it or not."""
    with pytest.raises(ValueError, match="nested deeper"):
        parse_json(text)
    with pytest.raises(ValueError, match="line 1"):
        list(ndjson.read_lines([text.encode() + b"\n"]))


def test_json_as_deep_as_allowed_is_read() -> None:
    """The limit itself still passes."""
    text = "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH
    assert json.dumps(parse_json(text)) == text


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"content": 5}, "content.*int"),
        ({"content": ["a"]}, "content.*list"),
        ({"content": [{"type": "text", "text": 5}]}, "text.*int"),
        ("x", "message.*str"),
        ({"content": "a", "tool_calls": 5}, "tool_calls.*int"),
        ({"content": "a", "reasoning": 5}, "reasoning.*int"),
    ],
)
def test_an_answer_of_another_shape_is_refused(message: object, says: str) -> None:
    """ValueError, which callers turn into an outcome."""
    with pytest.raises(ValueError, match=says):
        chat.read_reply({"choices": [{"message": message}]})


def test_content_parts_are_joined_and_odd_counts_left_out() -> None:
    """Servers that answer in parts are read; what is no count is not counted."""
    parts = [{"type": "text", "text": "a"}, {"type": "refusal"}, {"type": "text", "text": "b"}]
    usage = {"prompt_tokens": "many", "completion_tokens": 3}
    reply = chat.read_reply({"choices": [{"message": {"content": parts}}], "usage": usage, "model": ["a"], "id": 7})
    assert (reply.text, reply.usage, reply.model, reply.response_id) == ("ab", {"completion_tokens": 3}, None, None)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"detail": [{"loc": 5, "msg": "bad"}]}, "5: bad"),
        ({"detail": ["a", 5]}, "a; 5"),
        ({"error": DEEP}, None),
        ({"error": {"message": DEEP}}, None),
        ({"detail": [{"loc": DEEP, "msg": DEEP}]}, None),
        (DEEP, None),
        ('{"error": ' + "[" * 5000, None),
    ],
)
def test_no_error_body_is_too_odd_to_read(body: object, message: str | None) -> None:
    """A number for a place, and nesting without end."""
    found = chat.error_message(body)
    assert found and (message is None or found == message)


@pytest.mark.parametrize("chunk", [{"choices": ["a"]}, {"choices": {"a": 1}}, {"choices": [{"delta": "x"}]}])
def test_an_odd_chunk_is_the_streams_error(chunk: object) -> None:
    """The reader says so and is finished."""
    reader = chat_stream.StreamReader()
    reader.feed(f"data: {json.dumps(chunk)}\n\n".encode())
    assert reader.outcome == "error" and "no chunk of a chat" in (reader.error or "")
