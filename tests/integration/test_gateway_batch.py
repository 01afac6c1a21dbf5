"""/chat/batch against a loopback upstream: lines, statuses, what is refused, and answers that are none."""

from __future__ import annotations

import asyncio
import base64
import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.integration.gateway_rig import BODY, gateway, items
from tests.integration.stub_upstream import CHAT_ANSWER, answers, by_index, reset, streams, stub_upstream

WIRE_CASES = json.loads((Path(__file__).parents[1] / "golden" / "wire_cases.json").read_bytes())["cases"]


def strict(line: bytes) -> dict[str, Any]:
    """A line read as JSON without Python's NaN and Infinity, and one line to every reader."""

    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is not JSON")

    assert len(line.decode().splitlines()) == 1
    record: dict[str, Any] = json.loads(line, parse_constant=refuse)
    return record


async def raw_lines(rig: Any, batch: list[dict[str, Any]]) -> list[bytes]:
    """The lines of a batch as bytes."""
    answer = await rig.client.post("/chat/batch", json={"items": batch})
    assert answer.status_code == 200
    return [line + b"\n" for line in answer.content.split(b"\n") if line]


async def test_lines_leave_in_the_order_of_completion() -> None:
    """The slow first item comes last; ids match; the header counts the items."""
    slow_first = by_index({0: answers(delay_seconds=0.6)}, answers(delay_seconds=0.05))
    async with stub_upstream(slow_first) as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat/batch", json={"items": items(4)})
        lines = [json.loads(line) for line in answer.content.splitlines()]
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["x-batch-total"] == "4"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["cache-control"] == "no-cache"
    assert lines[-1]["id"] == "clip-0"
    assert {line["id"] for line in lines} == {f"clip-{index}" for index in range(4)}
    assert all(set(line) == {"id", "status", "elapsed_ms", "body"} for line in lines)
    assert all(line["body"] == CHAT_ANSWER and isinstance(line["elapsed_ms"], int) for line in lines)


async def test_a_line_comes_as_soon_as_its_item_is_done() -> None:
    """The first line is with the caller while the second item still runs."""
    behaviour = by_index({1: answers(delay_seconds=1.5)}, answers())
    async with (
        stub_upstream(behaviour) as stub,
        gateway(stub) as rig,
        rig.client.stream("POST", "/chat/batch", json={"items": items(2)}) as answer,
    ):
        lines = answer.aiter_lines()
        assert json.loads(await anext(lines))["id"] == "clip-0"
        assert stub.running == 1
        assert json.loads(await anext(lines))["id"] == "clip-1"


async def test_elapsed_leaves_the_queue_out() -> None:
    """Four items of 0.3 s on one permit: the last waits 0.9 s, and its elapsed_ms says about 300 like the first's."""
    async with stub_upstream(answers(delay_seconds=0.3)) as stub, gateway(stub, vllm_concurrency=1) as rig:
        lines = await rig.batch(items(4))
    assert [line["id"] for line in lines] == ["clip-0", "clip-1", "clip-2", "clip-3"], "permits go in order of asking"
    assert all(290 <= line["elapsed_ms"] < 800 for line in lines)
    assert stub.most_running == 1


async def test_item_bodies_go_on_byte_for_byte_under_ids_of_their_own() -> None:
    """Odd spacing and number forms inside an item's body survive; ids are the request's with the item's index."""
    first, second = (
        b'{ "model" : "qwen", "x":1e2,"y":[1 , 2]}',
        '{"안녕":"\\u00e9", "big": 12345678901234567890}'.encode(),
    )
    body = b'{"items": [ {"id":"a", "body":  ' + first + b' } , {"body":' + second + b', "id":"b", "extra": 1}]}'
    async with stub_upstream() as stub, gateway(stub, vllm_concurrency=1) as rig:
        answer = await rig.client.post("/chat/batch", content=body, headers={"X-Request-Id": "run-7"})
    assert answer.status_code == 200
    assert [request.body for request in stub.requests] == [first, second]
    assert [request.headers["x-request-id"] for request in stub.requests] == ["run-7-0", "run-7-1"]
    assert {request.headers["content-type"] for request in stub.requests} == {"application/json"}


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (
            404,
            {"error": {"message": "The model `nope` does not exist.", "code": 404}},
            "The model `nope` does not exist.",
        ),
        (401, {"error": "Unauthorized"}, "Unauthorized"),
        (405, {"detail": "Method Not Allowed"}, "Method Not Allowed"),
        (503, b"busy", "busy"),
        (500, b"", "HTTP 500 with an empty body"),
    ],
)
async def test_an_error_of_vllm_keeps_its_status_and_time(status: int, body: Any, error: str) -> None:
    """4xx and 5xx: the status and the real elapsed_ms, the message as a string, no body; the others go on."""
    behaviour = by_index({1: answers(body, status=status, delay_seconds=0.1)}, answers())
    async with stub_upstream(behaviour) as stub, gateway(stub) as rig:
        lines = {line["id"]: line for line in await rig.batch(items(3))}
    failed = lines["clip-1"]
    assert failed["elapsed_ms"] >= 100
    del failed["elapsed_ms"]
    assert failed == {"id": "clip-1", "status": status, "error": error}
    assert lines["clip-0"]["status"] == lines["clip-2"]["status"] == 200


async def _never(_request: Any, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


async def _head_then_nothing(_request: Any, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    await asyncio.sleep(3600)


async def _reset(_request: Any, writer: asyncio.StreamWriter) -> None:
    reset(writer)


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [(_never, "upstream_timeout"), (_head_then_nothing, "upstream_timeout"), (_reset, "truncated")],
)
async def test_a_failed_call_is_its_own_line(behaviour: Any, kind: str) -> None:
    """Timeout or reset: status 500, elapsed_ms 0, an error that starts with its class; the others go on."""
    async with stub_upstream(by_index({0: behaviour}, answers())) as stub, gateway(stub, vllm_timeout_seconds=1) as rig:
        lines = {line["id"]: line for line in await rig.batch(items(3))}
        assert rig.admission.in_use == 0
    failed = lines["clip-0"]
    assert (failed["status"], failed["elapsed_ms"]) == (500, 0)
    assert failed["error"].startswith(f"{kind}: ")
    assert "body" not in failed
    assert lines["clip-1"]["status"] == lines["clip-2"]["status"] == 200


async def test_nobody_there_is_a_line_an_item() -> None:
    """An unreachable vLLM fails every item and not the request."""
    async with stub_upstream() as gone:
        base_url = gone.base_url
    async with gateway(base_url) as rig:
        lines = await rig.batch(items(3))
    assert [(line["status"], line["elapsed_ms"], line["error"].split(":")[0]) for line in lines] == [
        (500, 0, "connect_failed")
    ] * 3


async def test_no_permit_in_time_fails_that_item_alone() -> None:
    """One permit, two items of 1 s, 0.3 s of patience: one answer, one acquire_timeout that never reached vLLM."""
    async with (
        stub_upstream(answers(delay_seconds=1)) as stub,
        gateway(stub, vllm_concurrency=1, vllm_acquire_timeout_seconds=0.3) as rig,
    ):
        first, second = await rig.batch(items(2))
    assert (first["id"], first["status"], first["elapsed_ms"]) == ("clip-1", 500, 0)
    assert first["error"].startswith("acquire_timeout: ")
    assert (second["id"], second["status"]) == ("clip-0", 200)
    assert len(stub.requests) == 1


def _case(name: str) -> bytes:
    return next(b"".join(base64.b64decode(c) for c in case["chunks"]) for case in WIRE_CASES if case["id"] == name)


EVENT_STREAM = "text/event-stream; charset=utf-8"


@pytest.mark.parametrize(
    ("body", "content_type", "kind", "says"),
    [
        (_case("error_first"), EVENT_STREAM, "upstream_error", "EngineCore encountered an issue"),
        (_case("error_mid"), EVENT_STREAM, "upstream_error", "EngineCore encountered an issue"),
        (_case("plain"), EVENT_STREAM, "upstream_error", "event stream"),
        (_case("empty_200"), EVENT_STREAM, "upstream_error", "event stream"),
        (b"", "application/json", "truncated", "empty body"),
        (b" \n", "application/json", "truncated", "empty body"),
        (b"<h1>ok</h1>", "text/html", "upstream_error", "not JSON"),
        (b"[1]", "application/json", "upstream_error", "list"),
        (b"null", "application/json", "upstream_error", "NoneType"),
        (b'{"choices": [', "application/json", "upstream_error", "not JSON"),
        (
            b'{"error": {"message": "out of memory", "code": 500}}',
            "application/json",
            "upstream_error",
            "out of memory",
        ),
        (b'{"error": "busy"}', "application/json", "upstream_error", "busy"),
    ],
)
async def test_a_200_that_is_no_answer_is_an_error_line(body: bytes, content_type: str, kind: str, says: str) -> None:
    """An event stream nobody asked for, nothing, no JSON, an error object: a 500 line that says so, in vLLM's words."""
    behaviour = by_index({1: answers(body, content_type=content_type)}, answers())
    async with stub_upstream(behaviour) as stub, gateway(stub) as rig:
        lines = {(record := strict(line))["id"]: record for line in await raw_lines(rig, items(3))}
    failed = lines["clip-1"]
    assert (failed["status"], failed["elapsed_ms"]) == (500, 0)
    assert failed["error"].startswith(f"{kind}: ")
    assert says in failed["error"]
    assert "body" not in failed
    assert lines["clip-0"]["status"] == lines["clip-2"]["status"] == 200


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"choices":[{"message":{"content":"x"},"logprobs":-Infinity}]}', {"logprobs": None}),
        (b'{"choices":[{"message":{"content":"x"},"logprobs":[NaN, 1.5, Infinity]}]}', {"logprobs": [None, 1.5, None]}),
        (b'{\r\n  "choices": [\n {"message": {"content": "x"}, "n": 1}]\n}\n', {"n": 1}),
        ('{"choices":[{"message":{"content":"x"},"n":"\u2028\u0085\u2029"}]}'.encode(), {"n": "\u2028\u0085\u2029"}),
        (b'{"choices":[{"message":{"content":"x"},"n":"\xff\xea"}]}', {"n": "\ufffd\ufffd"}),
        (b'{"choices":[{"message":{"content":"x"},"n":"\\ud800"}]}', {"n": "\ud800"}),
        (b'{"choices":[{"message":{"content":"x"},"n":"tab\there"}]}', None),
    ],
)
async def test_every_line_is_strict_json(body: bytes, expected: dict[str, Any] | None) -> None:
    """NaN, pretty printing, line ends in disguise, no UTF-8, lone surrogates: six strict lines all the same."""
    async with stub_upstream(by_index({2: answers(body)}, answers())) as stub, gateway(stub) as rig:
        records = [strict(line) for line in await raw_lines(rig, items(6))]
    assert len(records) == 6
    odd = next(record for record in records if record["id"] == "clip-2")
    if expected is None:
        assert odd["error"].startswith("upstream_error: ")
    else:
        assert odd["body"]["choices"][0] == {"message": {"content": "x"}, **expected}
    assert not any(isinstance(value, float) and not math.isfinite(value) for value in odd.values())


async def test_strict_bytes_of_vllm_stand_in_the_line_unchanged() -> None:
    """What is strict already is not written anew: number forms and spacing inside the body survive."""
    body = '{"choices": [{"p": 1.10, "q": 1E2, "t": "안녕"}]}'.encode()
    async with stub_upstream(answers(body)) as stub, gateway(stub) as rig:
        (line,) = await raw_lines(rig, items(1))
    assert line.endswith(b',"body":' + body + b"}\n")


async def test_no_items_is_200_without_a_line() -> None:
    """An empty batch is a batch."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat/batch", json={"items": []})
    assert (answer.status_code, answer.content, answer.headers["x-batch-total"]) == (200, b"", "0")
    assert answer.headers["content-type"] == "application/x-ndjson"


async def test_too_many_items_is_413_before_any_line() -> None:
    """129 items: one JSON error, and vLLM saw none of them; 128 are taken."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat/batch", json={"items": items(129)})
        assert answer.status_code == 413
        assert "129" in answer.json()["error"]["message"]
        assert "128" in answer.json()["error"]["message"]
        assert not stub.requests
        assert len(await rig.batch(items(128))) == 128


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", None),
        (b"{", None),
        (b'{"items": [{"id": "a", "body": {}},', None),
        (b"[]", None),
        (b"{}", "items"),
        (b'{"items": {}}', "items"),
        (b'{"items": [3]}', "items[0]"),
        (b'{"items": [{"id": "a", "body": {}}, {"body": {}}]}', "items[1].id"),
        (b'{"items": [{"id": "a", "body": {}}, {"id": "b"}]}', "items[1].body"),
        (b'{"items": [{"id": 7, "body": {}}]}', "items[0].id"),
        (b'{"items": [{"id": "a", "body": "x"}]}', "items[0].body"),
        (b'{"items": [{"id": "a", "body": null}]}', "items[0].body"),
        (b'{"items": [{"id": "a", "body": [1]}]}', "items[0].body"),
        (b'{"items": [{"id": "a", "body": {}}, {"id": "b", "body": {}}, {"id": "a", "body": {}}]}', "items[2].id"),
        (b'{"items": [{"id": "a", "body": {}}, {"id": "b", "body": {"stream": true}}]}', "items[1].body.stream"),
        (b'{"items": [{"id": "a", "body": {"x": NaN}}]}', "items[0]"),
        (b'{"items": [{"id": "a", "body": ' + b'{"x":' * 100_000 + b"1" + b"}" * 100_000 + b"}]}", "items[0]"),
    ],
)
async def test_a_malformed_batch_is_400_and_names_the_place(body: bytes, param: str | None) -> None:
    """The item and the field at fault are named; nothing is sent to vLLM."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        answer = await rig.client.post("/chat/batch", content=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, 400, param)
    assert error["message"].startswith(param or "the body")
    assert not stub.requests


async def test_stream_false_is_allowed_in_a_batch() -> None:
    """Only stream: true is refused; the word may stand anywhere else too."""
    body = {**BODY, "stream": False, "metadata": {"stream": True}}
    async with stub_upstream() as stub, gateway(stub) as rig:
        (line,) = await rig.batch([{"id": "a", "body": body}])
    assert line["status"] == 200


async def test_a_stream_in_an_item_that_breaks_off_is_one_line() -> None:
    """An unasked stream that is reset in the middle is that item's failure alone."""
    behaviour = by_index({0: streams([b"data: {}\n\n"], then="reset")}, answers())
    async with stub_upstream(behaviour) as stub, gateway(stub) as rig:
        lines = {line["id"]: line for line in await rig.batch(items(2))}
    assert lines["clip-0"]["error"].startswith("truncated: ")
    assert lines["clip-1"]["status"] == 200
