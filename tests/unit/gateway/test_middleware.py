"""The id and the log line of a request."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Any

import pytest
from tests.gateway_in_process import NoTransport, calling

from vision_bench.gateway.application import create_app
from vision_bench.gateway.logs import JsonFormatter
from vision_bench.gateway.middleware import RequestEntry
from vision_bench.gateway.settings import Settings

SCOPE: dict[str, Any] = {"type": "http", "method": "GET", "headers": [], "query_string": b"", "http_version": "1.1"}


@pytest.mark.parametrize("offered", ["a", "clip-0001_0600", "x" * 128, "!#$%&'*+-.^_`|~/\\\"<>"])
async def test_a_usable_id_is_kept(offered: str) -> None:
    """1 to 128 visible ASCII letters are the caller's to choose."""
    async with calling() as client:
        answer = await client.get("/healthz", headers={"X-Request-Id": offered})
    assert answer.headers["x-request-id"] == offered


@pytest.mark.parametrize("offered", [None, b"", b"x" * 129, b"a b", b"a\tb", "안녕".encode(), b"\x7f", b"caf\xe9"])
async def test_another_id_is_replaced(offered: bytes | None) -> None:
    """No id, too long, or letters that would break a log line: a fresh short one."""
    headers = [] if offered is None else [(b"X-Request-Id", offered)]
    async with calling() as client:
        seen = {(await client.get("/healthz", headers=headers)).headers["x-request-id"] for _ in range(2)}
    assert len(seen) == 2
    assert all(re.fullmatch("[0-9a-f]{8}", one) for one in seen)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/healthz"),
        ("GET", "/nope"),
        ("GET", "/chat"),
        ("POST", "/chat/batch"),
        ("GET", "/docs"),
        ("POST", "/chat"),
    ],
)
async def test_every_answer_has_exactly_one_id(method: str, path: str) -> None:
    """Errors too, and our own 500."""
    async with calling() as client:
        answer = await client.request(method, path, headers={"X-Request-Id": "mine"})
    assert answer.headers.get_list("x-request-id") == ["mine"]


async def test_our_own_failure_is_json_and_names_the_id(caplog: pytest.LogCaptureFixture) -> None:
    """A bug is a 500 in the error shape without its reason; the reason is in the log under the same id."""
    caplog.set_level(logging.INFO, "vision_bench")
    async with calling() as client:
        answer = await client.post("/chat", content=b"{}", headers={"X-Request-Id": "mine"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "internal_error")
    assert "mine" in answer.json()["error"]["message"]
    assert "SECRET" not in answer.text
    assert any(record.exc_info and "request_id=mine" in record.getMessage() for record in caplog.records)


async def test_the_log_line(caplog: pytest.LogCaptureFixture) -> None:
    """One line a request: id, route, status, outcome; what was not measured is a dash; nothing of query or body."""
    caplog.set_level(logging.INFO, "vision_bench")
    async with calling() as client:
        await client.get("/healthz?secret=1", headers={"X-Request-Id": "mine"})
        await client.post("/chat/batch?secret=1", content=b'{"secret": 1}', headers={"Authorization": "secret"})
        await client.get("/no%0Asuch%20place")
    first, second, third = [record.getMessage() for record in caplog.records if record.name.endswith("access")]
    assert first == (
        "request_id=mine method=GET route=/healthz status=200 items=- failed=- queue_ms=- upstream_ms=- outcome=ok"
    )
    assert "route=/chat/batch status=400" in second
    assert second.endswith("outcome=invalid_request")
    assert "\n" not in third
    assert third.endswith("outcome=not_found")
    assert "secret" not in "".join((first, second, third))


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/nope", 404, "there is no '/nope' here; /docs lists the routes"),
        ("POST", "/chat/", 404, "there is no '/chat/' here"),
        ("GET", "/docs-assets", 404, "there is no '/docs-assets' here"),
        ("GET", "/docs-assets/nope", 404, "there is no '/docs-assets/nope' here"),
        ("GET", "/" + "x" * 5000, 404, f"there is no '/{'x' * 99}' here"),
        ("GET", "/chat", 405, "'/chat' does not take this method; use POST"),
        ("HEAD", "/chat", 405, ""),
        ("PUT", "/healthz", 405, "'/healthz' does not take this method; use GET"),
        ("PUT", "/docs-assets/favicon.png", 405, "does not take this method; use GET"),
    ],
)
async def test_what_no_route_answers_is_told_the_way(method: str, path: str, status: int, words: str) -> None:
    """The path and the remedy; a slash too many is no redirect, which would lead to the name that a proxy made up."""
    async with calling() as client:
        answer = await client.request(method, path)
    assert answer.status_code == status
    assert words in answer.text
    assert (status == 405) == ("allow" in answer.headers)


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/docs", "/redoc", "/openapi.json"])
async def test_head_works_where_get_does(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """Probes ask so: the same status and headers, logged under the same route, no bytes counted."""
    caplog.set_level(logging.INFO, "vision_bench")
    async with calling() as client:
        asked, got = await client.head(path), await client.get(path)
        page = (await client.get("/metrics")).text
    assert (asked.status_code, asked.headers["content-type"]) == (got.status_code, got.headers["content-type"])
    head, get = [record.getMessage() for record in caplog.records if record.name.endswith("access")][:2]
    assert head.partition("route=")[2].split()[0] == get.partition("route=")[2].split()[0] == path
    if path != "/metrics":
        route = "other" if path == "/openapi.json" else path
        assert f'response_body_bytes_total{{route="{route}"}} {float(len(got.content))}' in page


CLOSED = "unable to perform operation on <TCPTransport closed=True reading=False 0x1>; the handler is closed"


@pytest.mark.parametrize("problem", [RuntimeError(CLOSED), ConnectionResetError("gone"), BrokenPipeError()])
async def test_an_answer_that_nobody_takes_is_a_caller_that_left(
    problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """The server cannot write, for the connection has just closed: no bug of ours, no traceback, status 499."""
    caplog.set_level(logging.INFO, "vision_bench")

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(_message: Any) -> None:
        raise problem

    app = create_app(Settings(_env_file=None, vllm_base_url="http://x/v1"), transport=NoTransport())
    async with app.router.lifespan_context(app):
        await app({**SCOPE, "path": "/healthz"}, receive, send)
    (line,) = [record.getMessage() for record in caplog.records]
    assert "status=499" in line
    assert line.endswith("outcome=client_left")


async def test_another_error_of_the_server_is_still_a_bug() -> None:
    """What uvicorn says of a wrong message is not taken for a caller that left."""
    sent: list[str] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])
        raise RuntimeError("Response content shorter than Content-Length")

    app = create_app(Settings(_env_file=None, vllm_base_url="http://x/v1"), transport=NoTransport())
    async with app.router.lifespan_context(app):
        with pytest.raises(RuntimeError, match="shorter"):
            await app({**SCOPE, "path": "/healthz"}, None, send)  # type: ignore[arg-type]
    assert len(sent) == 2, "the answer, and the answer that says so"


@pytest.mark.parametrize("message", ["", "Task cancelled, timeout graceful shutdown exceeded"])
async def test_a_request_that_is_cancelled_when_the_grace_is_over_gets_its_answer(message: str) -> None:
    """uvicorn's own cancelling is a 503 that says so; anybody else's goes on to whoever cancelled."""
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(answer: Any) -> None:
        sent.append(answer)

    app = create_app(Settings(_env_file=None, vllm_base_url="http://x/v1"), transport=NoTransport())
    async with app.router.lifespan_context(app):
        task = asyncio.ensure_future(app({**SCOPE, "method": "POST", "path": "/chat"}, receive, send))
        await asyncio.sleep(0.01)
        task.cancel(message) if message else task.cancel()
        if not message:
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not sent
            return
        await task
    assert sent[0]["status"] == 503
    assert (b"connection", b"close") in sent[0]["headers"]
    assert json.loads(sent[1]["body"])["error"]["type"] == "shutting_down"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/healthz"),
        ("GET", "/metrics"),
        ("GET", "/nope"),
        ("GET", "/chat"),
        ("POST", "/chat"),
        ("POST", "/chat/batch"),
        ("GET", "/docs"),
        ("GET", "/docs-assets/swagger-ui.css"),
        ("GET", "/docs-assets/nope"),
        ("GET", "/openapi.json"),
    ],
)
async def test_every_answer_has_its_times_once(method: str, path: str) -> None:
    """Refusals, pages, files, our own 500: the total at least, in one header."""
    async with calling() as client:
        answer = await client.request(method, path)
    (timing,) = answer.headers.get_list("server-timing")
    assert re.fullmatch(r"(queue;dur=\d+\.\d, )?(upstream;dur=\d+\.\d, )?total;dur=\d+\.\d", timing)


async def test_a_wrong_key_is_told_its_time_too() -> None:
    """A refusal in front of the routes."""
    async with calling(gateway_api_keys="k") as client:
        answer = await client.post("/chat")
    assert answer.status_code == 401
    assert answer.headers["server-timing"].startswith("total;dur=")


async def test_the_log_names_the_trace(caplog: pytest.LogCaptureFixture) -> None:
    """A caller's trace id stands at the end of the line; an invalid one is not in the log."""
    caplog.set_level(logging.INFO, "vision_bench")
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with calling() as client:
        await client.get("/healthz", headers={"traceparent": parent})
        await client.get("/healthz", headers={"traceparent": parent.replace("00-", "ff-")})
        await client.post("/chat", content=b"{}", headers={"traceparent": parent})
    first, second, third = [record for record in caplog.records if isinstance(record.msg, RequestEntry)]
    assert first.getMessage().endswith("outcome=ok trace_id=0af7651916cd43dd8448eb211c80319c")
    assert second.getMessage().endswith("outcome=ok")
    assert [json.loads(JsonFormatter().format(one)).get("trace_id") for one in (first, second, third)] == [
        "0af7651916cd43dd8448eb211c80319c",
        None,
        "0af7651916cd43dd8448eb211c80319c",
    ]
    (bug,) = [record for record in caplog.records if record.exc_info]
    assert json.loads(JsonFormatter().format(bug))["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
