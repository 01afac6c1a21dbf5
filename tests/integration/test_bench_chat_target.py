"""The measuring client over loopback: against streams from public bug reports, and against broken servers."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.integration.bench_rig import shooting
from tests.integration.stub_upstream import (
    CHAT_ANSWER,
    LAST_CHUNK,
    StubRequest,
    answers,
    chunk,
    stream_head,
    streams,
    stub_upstream,
)

from vision_bench.errors import ConnectFailed, InvalidRequest, UnknownName

CASES = json.loads((Path(__file__).parents[1] / "golden" / "wire_cases.json").read_text("utf-8"))["cases"]


def pieces(name: str) -> list[bytes]:
    return [base64.b64decode(piece) for case in CASES if case["id"] == name for piece in case["chunks"]]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
async def test_every_wire_case_over_a_socket(case: dict[str, Any], tmp_path: Path) -> None:
    """Without a charset in the header: outcome, text and tokens are what the case says."""
    behaviour = streams(pieces(case["id"]), content_type="text/event-stream")
    async with stub_upstream(behaviour) as stub, shooting(stub.base_url, tmp_path) as shoot:
        record = await shoot()
    expect = case["expect"]
    assert (record.outcome, record.text) == (expect["outcome"], expect["text"])
    if "completion_tokens" in expect:
        assert record.completion_tokens == expect["completion_tokens"]
    assert (record.k_ns != []) == (expect["text"] != "" or "tool" in expect)


async def test_the_clock_stops_at_done(tmp_path: Path) -> None:
    """A server that keeps the socket for 3 s behind [DONE] adds nothing, and its connection is given up after 50 ms."""
    behaviour = streams(pieces("after_done"), then="silent")
    async with stub_upstream(behaviour) as stub, shooting(stub.base_url, tmp_path) as shoot:
        record = await shoot()
        assert record.outcome == "ok" and record.end_ns is not None and record.hdr_ns is not None
        assert (record.end_ns - record.hdr_ns) / 1e9 < 1.5
        await asyncio.sleep(0.2)
        assert stub.open_connections == 0
        again = await shoot()
    assert (again.is_new_connection, stub.total_connections) == (True, 2)


async def test_a_connection_is_used_again_behind_done(tmp_path: Path) -> None:
    """The end of the chunked body may come a little behind [DONE]: it is waited for, off the clock."""

    async def behave(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(stream_head())
        for piece in pieces("plain"):
            writer.write(chunk(piece))
        await writer.drain()
        await asyncio.sleep(0.01)
        writer.write(LAST_CHUNK)
        await writer.drain()

    async with stub_upstream(behave) as stub, shooting(stub.base_url, tmp_path) as shoot:
        records = []
        for _ in range(3):
            records.append(await shoot())
            await asyncio.sleep(0.1)
        assert [record.is_new_connection for record in records] == [True, False, False]
        assert (stub.total_connections, shoot.pool.opened) == (1, 1)


async def test_stamps_are_in_order_and_gaps_are_the_servers(tmp_path: Path) -> None:
    """Events 30 ms apart come back at least nearly that far apart: nothing is held back and joined."""
    behaviour = streams(pieces("plain"), gap_seconds=0.03)
    async with stub_upstream(behaviour) as stub, shooting(stub.base_url, tmp_path) as shoot:
        record = await shoot()
    stamps = [record.due_ns, record.con_ns, record.hdr_ns, record.bod_ns, record.rsp_ns, record.first_event_ns]
    stamps += [*record.k_ns, record.end_ns, record.par_ns, record.val_ns]
    assert None not in stamps and stamps == sorted(stamps)  # type: ignore[type-var]
    gaps_ms = [(later - earlier) / 1e6 for earlier, later in zip(record.k_ns, record.k_ns[1:], strict=False)]
    assert len(gaps_ms) == 2 and min(gaps_ms) > 15
    assert (record.k_ns[-1] - record.k_ns[0]) / 1e6 > 45


async def test_the_body_goes_out_as_it_is(tmp_path: Path) -> None:
    """Byte for byte with its length and a request id, a large one too, and the key is in its header."""
    async with stub_upstream(answers()) as stub:
        text = "가" * 400_000
        async with shooting(stub.base_url, tmp_path, prompt=text, stream=False, api_key="sk-1") as shoot:
            record = await shoot()
    request = stub.requests[0]
    assert request.json()["messages"][0]["content"] == text
    assert (record.outcome, record.text, record.is_streamed) == ("ok", "안녕", False)
    assert (record.request_bytes, record.completion_tokens) == (len(request.body), 2)
    assert request.headers["authorization"] == "Bearer sk-1"
    assert request.headers["x-request-id"] == record.request_id == "test-0"
    assert record.bod_ns is not None and record.hdr_ns is not None and record.bod_ns > record.hdr_ns


async def test_errors_are_outcomes(tmp_path: Path) -> None:
    """An error status, a reset before the answer, a reset in the middle and silence: each has its word."""

    async def reset_at_once(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with stub_upstream() as stub, shooting(stub.base_url, tmp_path, timeout_seconds=0.5) as shoot:
        found = []
        for behaviour in (
            answers({"error": {"message": "busy"}}, status=503),
            reset_at_once,
            streams(pieces("plain")[:2], then="reset"),
            streams(pieces("plain")[:2], then="silent"),
        ):
            stub.behaviour = behaviour
            record = await shoot()
            found.append((record.outcome, record.status, len(record.k_ns)))
        stub.behaviour = answers(CHAT_ANSWER)
        assert (await shoot()).outcome == "ok"
    assert found == [
        ("http_error", 503, 0),
        ("truncated", None, 0),
        ("truncated", 200, 1),
        ("upstream_timeout", 200, 1),
    ]


async def test_a_refused_connection_is_one_record(tmp_path: Path) -> None:
    """The server is gone for a while: its requests have failed, the next one succeeds."""
    async with stub_upstream() as stub:
        port = stub.port
        async with shooting(stub.base_url, tmp_path, stream=False) as shoot:
            assert (await shoot()).outcome == "ok"
            stub.stop()
            await asyncio.sleep(0.05)
            assert (await shoot()).outcome == "connect_failed"
            async with stub_upstream(port=port):
                assert (await shoot()).outcome == "ok"


async def test_a_connection_closed_in_silence_is_not_used_again(tmp_path: Path) -> None:
    """A server that closes after each answer without saying so: every request gets a connection that is open."""
    async with stub_upstream() as stub, shooting(stub.base_url, tmp_path, stream=False) as shoot:
        stub.closes_silently = True
        for _ in range(3):
            assert (await shoot()).outcome == "ok"
            await asyncio.sleep(0.05)


async def test_warm_threads_and_repeats_are_told(tmp_path: Path) -> None:
    """A body is a repeat when it was sent before, a thread is warm when it had an answer before."""
    async with stub_upstream() as stub, shooting(stub.base_url, tmp_path, stream=False, threads=2) as shoot:
        records = [await shoot() for _ in range(4)]
    assert [(record.is_repeat, record.is_warm) for record in records] == [
        (False, False),
        (False, False),
        (True, True),
        (True, True),
    ]


async def test_batches_are_lines(tmp_path: Path) -> None:
    """One arrival is one batch; each line has its stamp."""

    async def behave(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(stream_head("application/x-ndjson"))
        for item in reversed(request.json()["items"]):
            line = {"id": item["id"], "status": 200, "elapsed_ms": 1, "body": CHAT_ANSWER}
            writer.write(chunk(json.dumps(line).encode() + b"\n"))
            await writer.drain()
            await asyncio.sleep(0.02)
        writer.write(LAST_CHUNK)

    async with stub_upstream(behave) as stub:
        url = f"http://127.0.0.1:{stub.port}/chat/batch"
        async with shooting(url, tmp_path, batch_size=3) as shoot:
            record = await shoot()
    assert record.lines is not None
    assert (record.outcome, [line.id for line in record.lines]) == ("ok", ["2", "1", "0"])
    assert record.lines[2].line_ns - record.lines[0].line_ns > 20e6
    assert record.completion_tokens == 6


def models(*names: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}


def serving(names: tuple[str, ...], *, status: int = 200, known: tuple[str, ...] = ()) -> Any:
    """A model list, and a chat route that knows ``known`` besides."""

    async def behave(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        if request.path == "/v1/models":
            await answers(models(*names), status=status)(request, writer)
        elif request.json()["model"] in (*names, *known):
            await answers()(request, writer)
        else:
            await answers({"error": {"message": "The model does not exist."}}, status=404)(request, writer)

    return behave


async def test_the_model_is_looked_up_before_the_run(tmp_path: Path) -> None:
    """A listed one is fine at once; one that is not listed is tried with one token; an unknown one is an error."""
    async with stub_upstream(serving(("qwen", "other"))) as stub, shooting(stub.base_url, tmp_path) as shoot:
        assert (await shoot.target.check("qwen")).models == ["qwen", "other"]
        assert [request.path for request in stub.requests] == ["/v1/models"]
        with pytest.raises(UnknownName, match="it lists qwen, other"):
            await shoot.target.check("gemma")
        stub.behaviour = serving(("qwen",), known=("adapter",))
        await shoot.target.check("adapter")


@pytest.mark.parametrize("status", [404, 500])
async def test_a_server_without_a_model_list_is_no_obstacle(status: int, tmp_path: Path) -> None:
    """A gateway need not have one."""
    async with stub_upstream(serving(("x",), status=status)) as stub, shooting(stub.base_url, tmp_path) as shoot:
        assert (await shoot.target.check("qwen")).models is None


async def test_a_missing_key_is_said_before_the_run(tmp_path: Path) -> None:
    """401 is the caller's to fix."""
    behaviour = answers({"error": "Unauthorized"}, status=401)
    async with stub_upstream(behaviour) as stub, shooting(stub.base_url, tmp_path) as shoot:
        with pytest.raises(InvalidRequest, match="--api-key"):
            await shoot.target.check("qwen")


async def test_nobody_at_the_address(tmp_path: Path) -> None:
    """A closed port and a host that does not exist, before the run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for host in (f"127.0.0.1:{port}", "no-such-host.invalid:80"):
        async with shooting(f"http://{host}/chat", tmp_path) as shoot:
            with pytest.raises(ConnectFailed):
                await shoot.target.check("qwen")
