"""Failures in the shapes of /v1beta."""

from __future__ import annotations

import json
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from vision_bench.gateway.live_shapes import ERROR_LIMIT_BYTES, FailureShapes, InvalidBody


async def answered(*messages: Message, path: str = "/v1beta/chat/completions") -> list[Message]:
    """What comes out of an application that sends these."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("nobody reads")

    await FailureShapes(app)({"type": "http", "path": path}, receive, send)
    return sent


def start(status: int, *headers: tuple[bytes, bytes]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def piece(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def test_an_error_without_end_is_cut() -> None:
    """A vLLM that sends an error for ever fills no memory: what is told of it is its beginning, and then nothing."""
    flood = [piece(b"x" * 1000, more=True) for _ in range(1000)]
    begun, first, *rest = await answered(start(500), *flood)
    told: Any = json.loads(first["body"])
    assert told["detail"]["error"]["message"] == "x" * 500
    assert dict(begun["headers"])[b"content-length"] == str(len(first["body"])).encode()
    assert len(rest) >= 1000 - ERROR_LIMIT_BYTES // 1000 - 2
    assert not any(message["body"] for message in rest)


async def test_an_error_in_pieces_is_one_error() -> None:
    """With a length or without, whatever the pieces."""
    body = json.dumps({"error": {"message": "no", "type": "NotFoundError"}}).encode()
    pieces = [*(piece(body[at : at + 1], more=True) for at in range(len(body))), piece(b"")]
    length = (b"content-length", str(len(body)).encode())
    for headers in ((), (length,)):
        _, first, *rest = await answered(start(404, *headers), *pieces)
        assert json.loads(first["body"])["detail"]["error"]["code"] == "model_unavailable"
        assert not any(message["body"] for message in rest)


async def test_an_error_that_was_packed_is_told_as_text_that_is_not() -> None:
    """Its coding went with the body that had it."""
    begun, first = await answered(start(500, (b"content-encoding", b"gzip")), piece(b"\x1f\x8b\x08"))
    assert b"content-encoding" not in dict(begun["headers"])
    assert json.loads(first["body"])["detail"]["error"]["type"] == "upstream_error"


def test_a_validation_error_is_clear_without_its_details() -> None:
    """Each fault begins with its place."""
    problem = InvalidBody((("source", "url"), "must be a string"), ((), "must be an object"))
    assert problem.body["message"] == "source.url must be a string; the body must be an object"
