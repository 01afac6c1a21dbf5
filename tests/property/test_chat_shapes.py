"""Laws of what is read from servers: whatever JSON stands wherever, only the documented error is raised."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from vision_bench.wire import chat, chat_stream, models

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def odd(*names: str, **right: Any) -> st.SearchStrategy[Any]:
    """Anything, or an object in which each of ``names`` holds anything, and ``right`` mostly what belongs there."""
    fields = dict.fromkeys(names, JSON) | {name: value | JSON for name, value in right.items()}
    return st.fixed_dictionaries({}, optional=fields)


def listed(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(item | JSON, max_size=2)


MESSAGE = odd(
    "content",
    "reasoning",
    "reasoning_content",
    content=listed(odd("type", "text")),
    tool_calls=listed(odd(function=odd("arguments"))),
)
CHOICE = odd("index", "finish_reason", "stop_reason", message=MESSAGE, delta=MESSAGE, index=st.just(0))
BODY = odd("id", "model", "error", "usage", choices=listed(CHOICE), usage=odd("prompt_tokens", "completion_tokens"))
DETAIL = odd("loc", "msg", "message", loc=listed(st.text(max_size=3)))
ERROR = odd("message", error=odd("message", "detail"), detail=listed(DETAIL))


@given(BODY | JSON)
def test_a_body_is_read_or_refused(body: Any) -> None:
    """A reply whose fields are of their kinds, or ValueError."""
    try:
        reply = chat.read_reply(body)
    except ValueError:
        return
    assert all(isinstance(text, str | None) for text in (reply.text, reply.reasoning, reply.finish_reason, reply.model))
    assert isinstance(reply.usage, dict | None)
    assert isinstance((reply.usage or {}).get("completion_tokens"), int | None)


@given(ERROR | JSON)
def test_any_error_is_one_string(body: Any) -> None:
    """As an object and as the text of one."""
    assert isinstance(chat.error_message(body), str)
    assert isinstance(chat.error_message(json.dumps(body)), str)


@given(st.lists(BODY | JSON, max_size=4))
def test_a_stream_of_anything_ends_in_an_outcome(chunks: list[Any]) -> None:
    """An odd event is the stream's error, not an exception."""
    reader = chat_stream.StreamReader()
    for chunk in chunks:
        reader.feed(f"data: {json.dumps(chunk)}\n\n".encode())
    reader.close()
    reply = reader.reply()
    assert reader.outcome in {"ok", "error", "truncated"} and isinstance(reply.text, str)
    assert isinstance(reply.usage, dict | None)


@given(odd(data=listed(odd("state", "max_model_len", id=st.text(max_size=3)))) | JSON)
def test_a_model_list_is_read_or_refused(body: Any) -> None:
    """An entry of another kind is left out."""
    try:
        found = models.read_models(body)
    except ValueError:
        return
    assert all(isinstance(model.max_model_len, int | None) for model in found)


EVENT = odd("id", "model", "usage", choices=st.lists(odd(
    "index", "finish_reason", "stop_reason", index=st.just(0), finish_reason=st.none(), stop_reason=st.none(),
    delta=odd("content", "role", "reasoning", content=st.text(max_size=4), role=st.just("assistant")),
), max_size=2))  # fmt: skip


@given(st.lists(EVENT | BODY, max_size=4))
def test_a_plain_chunk_is_read_as_any_other(bodies: list[Any]) -> None:
    """With and without the short way: the same pieces, usage, error, outcome and reply."""
    stream = b"".join(b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies)

    def read() -> tuple[Any, ...]:
        reader = chat_stream.StreamReader()
        events = reader.feed_events(stream)
        return events, reader.error, reader.outcome, repr(reader.reply())

    short = read()
    with mock.patch.object(chat_stream, "plain_text", return_value=None):
        assert repr(read()) == repr(short)


def test_the_short_way_is_taken_where_it_should_be() -> None:
    """One piece of text of choice 0, with or without the role; not an end, a second choice, reasoning, or no text."""
    plain = {"index": 0, "delta": {"content": "a"}, "finish_reason": None, "logprobs": None}
    assert chat_stream.plain_text({"choices": [plain], "usage": {"completion_tokens": 1}}) == "a"
    assert chat_stream.plain_text({"choices": [plain | {"delta": {"role": "assistant", "content": "a"}}]}) == "a"
    others = [
        {"index": 1}, {"finish_reason": "stop"}, {"stop_reason": 7}, {"delta": {"content": ""}}, {"delta": None},
        {"delta": {"content": "a", "reasoning": "b"}}, {"delta": {"content": "a", "tool_calls": []}},
    ]  # fmt: skip
    assert [chat_stream.plain_text({"choices": [plain | other]}) for other in others] == [None] * len(others)
    assert [chat_stream.plain_text({"choices": choices}) for choices in ([], None, [plain, plain], ["a"])] == [None] * 4
