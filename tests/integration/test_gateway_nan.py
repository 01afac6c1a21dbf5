"""NaN and infinities wherever a Python server may write them: bytes on /chat, strict JSON in a batch's lines."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.integration.gateway_rig import BODY, Rig, gateway, items
from tests.integration.stub_upstream import StubUpstream, answers, by_index, streams, stub_upstream

NAN, INFINITY = float("nan"), float("inf")

values: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([NAN, INFINITY, -INFINITY, None, True, 0, 1.5, "NaN", "안녕"]) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "NaN", "logprobs"]), inner),
    max_leaves=8,
)


class Kept(NamedTuple):
    runner: asyncio.Runner
    stub: StubUpstream
    rig: Rig


@pytest.fixture(scope="module")
def kept() -> Iterator[Kept]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        stub = runner.run(stack.enter_async_context(stub_upstream()))
        rig = runner.run(stack.enter_async_context(gateway(stub)))
        try:
            yield Kept(runner, stub, rig)
        finally:
            runner.run(stack.aclose())


def strict(line: bytes) -> Any:
    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(line, parse_constant=refuse)


def without(value: Any) -> Any:
    """What a strict reader may see of ``value``: null for what JSON has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: without(inner) for key, inner in value.items()}
    return [without(inner) for inner in value] if isinstance(value, list) else value


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(["choices", "usage", "logprobs", "x"]), values), st.sampled_from([None, 1]))
@example({"choices": [{"message": {"content": "x"}, "logprobs": -INFINITY}]}, None)
def test_an_answer_with_infinities_anywhere(kept: Kept, answer: dict[str, Any], indent: int | None) -> None:
    """Third of six items: /chat gives the upstream's bytes, the batch six strict lines with null in those places."""
    body = json.dumps(answer, indent=indent).encode()

    async def scenario() -> None:
        kept.stub.behaviour = answers(body)
        assert (await kept.rig.client.post("/chat", json=BODY)).content == body
        kept.stub.behaviour = by_index({2: answers(body)}, answers())
        got = await kept.rig.client.post("/chat/batch", json={"items": items(6)})
        lines = {(line := strict(raw))["id"]: line for raw in got.content.split(b"\n")[:-1]}
        assert len(lines) == 6
        assert lines["clip-2"]["body"] == without(answer)

    kept.runner.run(scenario())


WORDS = ["NaN", "Infinity", "-Infinity", "nan", "inf", "+Infinity", "-NaN", "1e999", "-1e999"]
"""The first three are what Python's json writes and reads; the last two are JSON, and no finite number to Python."""


@pytest.mark.parametrize(
    ("status", "form", "type"),
    [
        (200, "%s", "application/json"),
        (200, "[%s]", "application/json"),
        (200, '{"error": %s}', "application/json"),
        (200, '{"error": {"message": "boom", "at": %s}}', "application/json"),
        (200, 'data: {"choices": [{"index": 0, "logprobs": %s}]}\n\ndata: [DONE]\n\n', "text/event-stream"),
        (200, 'data: {"error": {"message": "boom", "at": %s}}\n\ndata: [DONE]\n\n', "text/event-stream"),
        (400, "%s", "application/json"),
        (400, '{"error": {"message": "boom", "at": %s}}', "application/json"),
        (400, '{"error": %s, "detail": [%s]}', "application/json"),
        (200, '{"choices": [%s]', "application/json"),
    ],
)
def test_other_places_are_an_error_of_that_item(kept: Kept, status: int, form: str, type: str) -> None:
    """As the whole answer, in an error, in events nobody asked for, in what is cut short: bytes on /chat, and in a
    batch a strict line with an error, vLLM's message in it where there is one; the others go on. Where such a word is
    all the error there is, it is null and so no error."""

    async def scenario(word: str) -> None:
        body = form.replace("%s", word).encode()
        odd = answers(body, status=status, content_type=type)
        kept.stub.behaviour = odd
        answer = await kept.rig.client.post("/chat", json=BODY)
        assert (answer.status_code, answer.content) == (status, body)
        kept.stub.behaviour = by_index({1: odd}, answers())
        got = await kept.rig.client.post("/chat/batch", json={"items": items(3)})
        lines = {(line := strict(raw))["id"]: line for raw in got.content.split(b"\n")[:-1]}
        assert len(lines) == 3
        assert lines["clip-0"]["status"] == lines["clip-2"]["status"] == 200
        line = lines["clip-1"]
        if form == '{"error": %s}' and "body" in line:
            assert line["body"] == {"error": None}
        else:
            assert "internal_error" not in line["error"]
            assert "boom" in line["error"] or "boom" not in form or word not in WORDS[:3]

    for word in WORDS:
        kept.runner.run(scenario(word))


@pytest.mark.parametrize("event", ['data: {"logprobs": NaN}\n\n', 'data: {"error": {"at": -Infinity}}\n\n'])
async def test_a_stream_passes_them_on(event: str) -> None:
    """Events are not read: bytes as they came."""
    async with stub_upstream(streams([event.encode(), b"data: [DONE]\n\n"])) as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat", json={**BODY, "stream": True})
    assert answer.content == event.encode() + b"data: [DONE]\n\n"


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
async def test_in_a_request(word: str) -> None:
    """/chat passes any body on; a batch is JSON, and such a word in it is a 400."""
    body = b'{"model": "qwen", "temperature": %s}' % word.encode()
    async with stub_upstream() as stub, gateway(stub) as rig:
        assert (await rig.client.post("/chat", content=body)).status_code == 200
        assert stub.requests[-1].body == body
        for batch in (b'{"items": [{"id": "a", "body": %s}]}' % body, b'{"items": [], "x": %s}' % word.encode()):
            answer = await rig.client.post("/chat/batch", content=batch)
            assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request")
