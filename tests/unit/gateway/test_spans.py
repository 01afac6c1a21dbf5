"""The spans of a request: their tree, their times, what they say and what they never say."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from opentelemetry import trace as global_trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace import SpanKind, StatusCode

from vision_bench.errors import BrokenStream, ConnectFailed, InvalidSettings
from vision_bench.gateway.application import create_app
from vision_bench.gateway.settings import Settings
from vision_bench.gateway.spans import Spans
from vision_bench.gateway.timings import Timings

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
SECRET = "geheim"
ANSWER = b'{"choices":[]}'


class Canned:
    """An answer in these chunks; None is a break."""

    def __init__(self, *chunks: bytes | None, status: int = 200, content_type: str = "application/json") -> None:
        self.status = status
        self.headers: Mapping[str, str] = {"Content-Type": content_type}
        self._left = [*chunks, b""]

    async def read_some(self) -> bytes:
        piece = self._left.pop(0)
        if piece is None:
            raise BrokenStream("vLLM broke off in the middle of its answer")
        return piece


@dataclass
class Upstream:
    """A transport that answers by a word in the body, and keeps the headers it was sent."""

    sent: list[dict[str, str]] = field(default_factory=list)
    failures: list[Exception | Canned] = field(default_factory=list)
    began: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def post(self, path: str, body: Any, headers: Mapping[str, str]) -> AsyncIterator[Canned]:
        self.sent.append(dict(headers))
        whole = bytes(body) if isinstance(body, bytes | bytearray | memoryview) else b"".join(body)
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            yield failure
        elif b"refused" in whole:
            yield Canned(b'{"error":{"message":"%s"}}' % SECRET.encode(), status=400)
        elif b"unreachable" in whole:
            raise ConnectFailed(f"vLLM cannot be reached ({SECRET})")
        elif b"forever" in whole:
            self.began.set()
            await asyncio.Event().wait()
        elif b"stream" in whole:
            yield Canned(b"data: a\n\n", b"data: b\n\n", content_type="text/event-stream")
        elif b"broken" in whole:
            yield Canned(b"data: a\n\n", None, content_type="text/event-stream")
        else:
            yield Canned(ANSWER)


@dataclass
class Rig:
    client: httpx.AsyncClient
    upstream: Upstream
    app: Any
    memory: InMemorySpanExporter
    spans: tuple[ReadableSpan, ...] = ()

    @property
    def server(self) -> ReadableSpan:
        (span,) = [span for span in self.spans if span.kind is SpanKind.SERVER]
        return span

    @property
    def waits(self) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == "queue"]

    @property
    def calls(self) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == "chat"]


@asynccontextmanager
async def recorded(*, sampler: Sampler | None = None, url: str = "http://vllm:8000/v1", **settings: Any) -> Any:
    """A gateway in this process; its spans are there when the block has been left."""
    memory, upstream = InMemorySpanExporter(), Upstream()
    chosen = Settings(_env_file=None, vllm_base_url=url, **settings)
    app = create_app(chosen, transport=upstream, spans=Spans(memory, sampler=sampler))  # type: ignore[arg-type]
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        rig = Rig(client, upstream, app, memory)
        async with app.router.lifespan_context(app):
            yield rig
        rig.spans = memory.get_finished_spans()


async def raw_post(app: Any, body: bytes) -> list[Any]:
    """What the application sends in answer to a body; httpx refuses an answer without an end."""
    sent: list[Any] = []
    scope = {"type": "http", "method": "POST", "path": "/chat", "headers": [], "query_string": b""}

    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    await app({**scope, "http_version": "1.1"}, receive, send)
    return sent


def hexed(span_id: int) -> str:
    return f"{span_id:016x}"


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def children_of(span: ReadableSpan, spans: Sequence[ReadableSpan]) -> list[ReadableSpan]:
    return [one for one in spans if one.parent is not None and one.parent.span_id == span.context.span_id]


def lies_within(inner: ReadableSpan, outer: ReadableSpan) -> bool:
    times = outer.start_time, inner.start_time, inner.end_time, outer.end_time
    return list(times) == sorted(times)  # type: ignore[type-var]


async def test_a_call_is_a_server_span_with_a_wait_and_a_call() -> None:
    """/chat: the tree, in order and inside one another, with HTTP's names and gen_ai's; nothing else is said."""
    async with recorded() as rig:
        answer = await rig.client.post("/chat?q=geheim", content=b'{"a": "geheim"}', headers={"X-Request-Id": "mine"})
    assert answer.status_code == 200
    server, (wait,), (call,) = rig.server, rig.waits, rig.calls
    assert server.parent is None
    assert children_of(server, rig.spans) == [wait, call]
    assert lies_within(wait, server)
    assert lies_within(call, server)
    assert wait.end_time <= call.start_time
    assert (server.name, server.kind, server.status.status_code) == ("POST /chat", SpanKind.SERVER, StatusCode.UNSET)
    assert attributes(server) == {
        "http.request.method": "POST",
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "http.route": "/chat",
        "http.response.status_code": 200,
        "http.request.body.size": 15,
        "http.response.body.size": len(ANSWER),
        "vision_bench.request_id": "mine",
        "vision_bench.outcome": "ok",
        "vision_bench.items": 1,
    }
    assert attributes(wait) == {"vision_bench.request_id": "mine", "vision_bench.wait_for": "permit"}
    assert call.kind is SpanKind.CLIENT
    assert attributes(call) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "vllm",
        "server.address": "vllm",
        "server.port": 8000,
        "http.response.status_code": 200,
        "vision_bench.request_id": "mine",
    }
    assert attributes_of_resource(server)["service.name"] == "vision-bench-gateway"


def attributes_of_resource(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.resource.attributes)


async def test_vllm_is_told_the_call_as_its_parent() -> None:
    """The traceparent that leaves names the caller's trace and our call's span; tracestate goes on as it came."""
    async with recorded() as rig:
        await rig.client.post("/chat", content=b"{}", headers={"traceparent": PARENT, "tracestate": "a=b"})
    (sent,) = rig.upstream.sent
    (call,) = rig.calls
    assert sent["traceparent"] == f"00-{TRACE}-{hexed(call.context.span_id)}-01"
    assert sent["tracestate"] == "a=b"
    assert hexed(rig.server.parent.span_id) == "b7ad6b7169203331"
    assert rig.server.parent.is_remote
    assert {f"{span.context.trace_id:032x}" for span in rig.spans} == {TRACE}


async def test_a_new_trace_begins_without_a_callers(caplog: pytest.LogCaptureFixture) -> None:
    """Two requests are two traces; vLLM is told each, the log names each."""
    caplog.set_level(logging.INFO, "vision_bench")
    async with recorded() as rig:
        for _ in range(2):
            await rig.client.post("/chat", content=b"{}", headers={"traceparent": "nonsense"})
    ids = [f"{span.context.trace_id:032x}" for span in rig.spans if span.kind is SpanKind.SERVER]
    assert len(set(ids)) == 2
    assert [sent["traceparent"].split("-")[1] for sent in rig.upstream.sent] == ids
    assert all(sent["traceparent"].endswith("-03") for sent in rig.upstream.sent), "sampled, and a random id"
    lines = [record.getMessage() for record in caplog.records if record.name.endswith("access")]
    assert [line.rpartition("trace_id=")[2] for line in lines] == ids


async def test_a_callers_flag_is_kept() -> None:
    """Not sampled there is not sampled here: no span, and its header goes on as it came."""
    async with recorded() as rig:
        await rig.client.post("/chat", content=b"{}", headers={"traceparent": PARENT[:-2] + "00"})
        await rig.client.post("/chat", content=b"{}", headers={"traceparent": PARENT[:-2] + "03"})
    first, second = rig.upstream.sent
    assert first["traceparent"] == PARENT[:-2] + "00"
    assert second["traceparent"].endswith("-03")
    assert len(rig.spans) == 3


async def test_a_sampler_decides_on_what_begins_here() -> None:
    """One that takes nothing: no span, and vLLM hears that this trace is not recorded; the id is in no span."""
    async with recorded(sampler=ALWAYS_OFF) as rig:
        await rig.client.post("/chat", content=b"{}")
    assert rig.spans == ()
    assert rig.upstream.sent[0]["traceparent"].endswith("-02")


async def test_a_sampler_may_take_what_the_caller_did_not() -> None:
    """always_on records a trace whose caller did not; the flag that goes on says so."""
    async with recorded(sampler=ALWAYS_ON) as rig:
        await rig.client.post("/chat", content=b"{}", headers={"traceparent": PARENT[:-2] + "00"})
    assert len(rig.spans) == 3
    assert rig.upstream.sent[0]["traceparent"].endswith("-01")


async def test_without_spans_the_trace_passes_as_it_came() -> None:
    """No exporter: the caller's header unchanged, and none is made up."""
    upstream = Upstream()
    app = create_app(Settings(_env_file=None, vllm_base_url="http://x/v1"), transport=upstream)  # type: ignore[arg-type]
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client,
    ):
        await client.post("/chat", content=b"{}", headers={"traceparent": PARENT})
        await client.post("/chat", content=b"{}")
    assert [sent.get("traceparent") for sent in upstream.sent] == [PARENT, None]


async def test_a_stream_is_one_call_to_its_last_byte() -> None:
    """The sizes are those of what went through."""
    async with recorded() as rig:
        answer = await rig.client.post("/v1/chat/completions", content=b'{"stream":1}')
    assert rig.server.name == "POST /v1/chat/completions"
    assert attributes(rig.server)["http.response.body.size"] == len(answer.content) == 18
    assert len(rig.calls) == 1


async def test_a_stream_that_breaks_is_a_failure_under_its_200() -> None:
    """Both spans fail with the word of the log, though the status is a success."""
    async with recorded() as rig:
        sent = await raw_post(rig.app, b"broken")
    assert sent[-1]["more_body"], "no proper end"
    for span in (rig.server, *rig.calls):
        assert span.status.status_code is StatusCode.ERROR
        assert attributes(span)["error.type"] == "truncated"
        assert attributes(span)["http.response.status_code"] == 200


async def test_every_item_of_a_batch_has_its_own_spans() -> None:
    """Four items, two of them failing: four waits and four calls under one server span, told apart by their ids; vLLM
    is told each one's own span."""
    words = ["fine", "refused", "unreachable", "fine"]
    batch = {"items": [{"id": f"{SECRET}{index}", "body": {"a": word}} for index, word in enumerate(words)]}
    async with recorded() as rig:
        await rig.client.post("/chat/batch", json=batch, headers={"X-Request-Id": "mine", "traceparent": PARENT})
    said = attributes(rig.server)
    assert (said["vision_bench.items"], said["vision_bench.items_failed"]) == (4, 2)
    assert rig.server.status.status_code is StatusCode.UNSET, "the batch itself was answered"
    assert sorted(children_of(rig.server, rig.spans), key=id) == sorted([*rig.waits, *rig.calls], key=id)
    ids = [f"mine-{index}" for index in range(4)]
    assert sorted(attributes(wait)["vision_bench.request_id"] for wait in rig.waits) == ids
    by_id = {attributes(call)["vision_bench.request_id"]: call for call in rig.calls}
    errors = [attributes(by_id[one]).get("error.type") for one in ids]
    assert errors == [None, "400", "connect_failed", None]
    told = {sent["X-Request-Id"]: sent["traceparent"].split("-")[2] for sent in rig.upstream.sent}
    assert told == {one: hexed(call.context.span_id) for one, call in by_id.items()}


@pytest.mark.parametrize("first", [ConnectFailed("gone"), Canned(b"{}", status=503)])
async def test_a_call_that_moves_is_two_calls(first: Exception | Canned) -> None:
    """The first names its failure, the second that it is a resend; each server is told its own span."""
    async with recorded(url="http://a:1/v1,http://b:2/v1") as rig:
        rig.upstream.failures.append(first)
        answer = await rig.client.post("/chat", content=b"{}", headers={"traceparent": PARENT})
    assert answer.status_code == 200
    one, two = [attributes(call) for call in rig.calls]
    assert one["error.type"] == ("503" if isinstance(first, Canned) else "connect_failed")
    assert "http.request.resend_count" not in one
    assert two["http.request.resend_count"] == 1
    assert "error.type" not in two
    assert {one["server.address"], two["server.address"]} == {"a", "b"}
    assert len(rig.waits) == 2
    told = [sent["traceparent"].split("-")[2] for sent in rig.upstream.sent]
    assert told == [hexed(call.context.span_id) for call in rig.calls]
    assert "error.type" not in attributes(rig.server)


async def test_refusals() -> None:
    """A 4xx is no error of the server's; a 5xx is one, with its word; a path that no route knows stays unsaid."""
    async with recorded(max_batch_items=1) as rig:
        await rig.client.get(f"/{SECRET}")
        await rig.client.request("GEHEIM", "/chat")
        await rig.client.post("/chat/batch", content=b'{"items":[{"id":"a","body":{}},{"id":"b","body":{}}]}')
        await rig.client.post("/chat", content=b"unreachable")
        await rig.client.post("/chat", content=b"refused")
    servers = [span for span in rig.spans if span.kind is SpanKind.SERVER]
    said = [
        (span.name, span.attributes["http.response.status_code"], span.attributes.get("error.type"))
        for span in servers
        if span.attributes is not None
    ]
    assert said == [
        ("GET", 404, None),
        ("HTTP /chat", 405, None),
        ("POST /chat/batch", 413, None),
        ("POST /chat", 502, "connect_failed"),
        ("POST /chat", 400, None),
    ]
    assert "http.route" not in attributes(servers[0])
    assert attributes(servers[1])["http.request.method"] == "_OTHER"


async def test_no_permit_in_time_is_a_wait_that_failed() -> None:
    """Its wait has the error, and there is no call."""
    async with recorded(vllm_concurrency=1, vllm_acquire_timeout_seconds=0.01) as rig:
        lane = await rig.app.state.admission.acquire(Timings())
        await rig.client.post("/chat", content=b"{}")
        rig.app.state.admission.release(lane)
    assert attributes(rig.waits[0])["error.type"] == "acquire_timeout"
    assert attributes(rig.server)["error.type"] == "acquire_timeout"
    assert rig.calls == []


async def test_a_caller_that_leaves() -> None:
    """No status, and client_left on the request and on the call it had going."""
    gone = asyncio.Event()
    pieces = [{"type": "http.request", "body": b"forever"}]

    async def receive() -> Any:
        if pieces:
            return pieces.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(_message: Any) -> None:
        raise AssertionError("nobody is there")

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/chat",
        "headers": [],
        "query_string": b"",
        "http_version": "1.1",
    }
    async with recorded() as rig:
        task = asyncio.ensure_future(rig.app(scope, receive, send))
        await rig.upstream.began.wait()
        gone.set()
        await task
    assert "http.response.status_code" not in attributes(rig.server)
    assert [attributes(span)["error.type"] for span in (rig.server, *rig.calls)] == ["client_left", "client_left"]


async def test_a_wait_for_room_is_a_wait() -> None:
    """Beside the one for a permit, and before it."""
    async with recorded(gateway_buffer_bytes=20, gateway_max_body_bytes=20) as rig:
        room = rig.app.state.buffer
        await room.take(20, None)
        call = asyncio.ensure_future(rig.client.post("/chat", content=b"{}"))
        while not room.waiting:
            await asyncio.sleep(0)
        room.give_back(20)
        await call
    assert [attributes(wait)["vision_bench.wait_for"] for wait in rig.waits] == ["room", "permit"]
    assert rig.waits[0].end_time <= rig.waits[1].start_time


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_a_probe_begins_no_trace(path: str) -> None:
    """What machines ask every few seconds is recorded only as part of a trace of theirs."""
    async with recorded() as rig:
        rig.app.state.readiness = None
        await rig.client.get(path)
        await rig.client.get(path, headers={"traceparent": PARENT})
    assert rig.server.name == f"GET {path}"


async def test_nothing_that_a_caller_sent_is_said() -> None:
    """Bodies, item ids, queries, paths, headers and keys stand in no span, nor does vLLM's error message."""
    headers = {"Authorization": f"Bearer {SECRET}", "User-Agent": SECRET, "tracestate": f"{SECRET}={SECRET}"}
    headers |= {"traceparent": PARENT, "Host": SECRET, "Content-Type": SECRET, "Cookie": SECRET}
    body = {"model": SECRET, "messages": [{"role": "user", "content": SECRET}]}
    async with recorded(vllm_api_key=SECRET) as rig:
        for word in ("fine", "refused", "unreachable", "stream"):
            await rig.client.post(f"/chat?{SECRET}", json={**body, "x": word}, headers=headers)
        await rig.client.post("/chat/batch", json={"items": [{"id": SECRET, "body": body}]}, headers=headers)
        await rig.client.post(f"/{SECRET}/{SECRET}", headers=headers)
        await rig.client.get(f"/v1/models/{SECRET}", headers=headers)
    assert len(rig.spans) == 4 * 3 + 3 + 2
    assert SECRET not in json.dumps([json.loads(span.to_json()) for span in rig.spans])
    assert "GET /v1/models/{model_id}" in {span.name for span in rig.spans}


async def test_no_provider_is_set_for_the_process() -> None:
    """What the program around us does with OpenTelemetry is its own."""
    before = global_trace.get_tracer_provider()
    async with recorded() as rig:
        await rig.client.post("/chat", content=b"{}")
    assert global_trace.get_tracer_provider() is before


class Broken(SpanExporter):
    """Fails so often, each time logging as the SDK's own does; then takes everything."""

    def __init__(self, failures: int, *, raises: bool = False) -> None:
        self._left = failures
        self._raises = raises

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._left == 0:
            return SpanExportResult.SUCCESS
        self._left -= 1
        if self._raises:
            raise OSError(SECRET)
        logging.getLogger(__name__).error("Failed to export %s batch: %s", SECRET, ConnectionError(SECRET))
        return SpanExportResult.FAILURE


@pytest.mark.parametrize("raises", [False, True])
async def test_an_exporter_that_fails_is_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, raises: bool
) -> None:
    """Three batches lost are one line with the kind of failure and one that it is over; nothing of the SDK's own."""
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    caplog.set_level(logging.INFO)
    app = create_app(
        Settings(_env_file=None, vllm_base_url="http://x/v1"),
        transport=Upstream(),  # type: ignore[arg-type]
        spans=Spans(Broken(3, raises=raises), collector="http://collector:4318"),
    )
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client,
    ):
        for _ in range(2):
            assert (await client.post("/chat", content=b"{}")).status_code == 200
    lines = [
        record.getMessage() for record in caplog.records if "access" not in record.name and "httpx" not in record.name
    ]
    kind = "OSError" if raises else "ConnectionError"
    assert lines == [
        "spans: to http://collector:4318",
        f"spans: http://collector:4318 does not take them ({kind}); requests go on",
        "spans: http://collector:4318 takes them again; 3 were lost",
        "spans: 3 of 6 were lost",
    ]


async def test_what_the_queue_cannot_hold_is_dropped_whole(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of requests with three spans each a queue of five holds one while nothing is taken; no half of another, no line
    for each, and the answer is not delayed."""
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "5")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")
    async with recorded() as rig:
        for _ in range(4):
            await rig.client.post("/chat", content=b"{}")
    assert len(rig.spans) == 3
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert lines == ["spans: 9 of 12 were lost"]


@pytest.mark.parametrize(("name", "value"), [("OTEL_BSP_MAX_QUEUE_SIZE", "many"), ("OTEL_BSP_SCHEDULE_DELAY", "-1")])
def test_a_variable_that_the_sdk_cannot_use_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """One line, exit code 4."""
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidSettings, match="OTEL_BSP"):
        Spans(InMemorySpanExporter())


async def test_the_standard_variables_name_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over our own."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=lab")
    async with recorded() as rig:
        await rig.client.post("/chat", content=b"{}")
    said = attributes_of_resource(rig.server)
    assert (said["service.name"], said["deployment.environment"]) == ("mine", "lab")
