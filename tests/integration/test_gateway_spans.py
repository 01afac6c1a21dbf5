"""Spans over OTLP/HTTP: a collector that takes them, one that is down, one that says nothing."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.integration.gateway_rig import BODY, gateway, items
from tests.integration.stub_upstream import stub_upstream
from tests.integration.test_gateway_start import SERVE, UVICORN, start

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
DOWN = "http://127.0.0.1:9"


@dataclass
class Collector:
    """What it was sent: paths, headers in lower case, spans by name."""

    url: str
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    resources: list[dict[str, str]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


@contextmanager
def collector() -> Iterator[Collector]:
    """One that reads protobuf over HTTP on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told = ExportTraceServiceRequest.FromString(body)
            seen.paths.append(self.path)
            seen.headers.append({name.lower(): value for name, value in self.headers.items()})
            for group in told.resource_spans:
                seen.resources.append({one.key: one.value.string_value for one in group.resource.attributes})
                seen.spans += [span for scope in group.scope_spans for span in scope.spans]
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    seen = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def running(command: list[str], folder: Path, **env: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A gateway in a process of its own, in front of a vLLM that is not there; it answers when the block begins."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = start([*command, "--port", str(port)], folder, VLLM_BASE_URL="http://127.0.0.1:9/v1", **env)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
            deadline = time.monotonic() + 60
            while True:
                try:
                    client.get("/healthz")
                    break
                except httpx.ConnectError:
                    assert process.poll() is None, process.communicate()
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            yield process, client
    finally:
        process.kill()
        process.communicate()


def stopped(process: subprocess.Popen[str], *, within_seconds: float) -> str:
    """Its stderr, after a SIGTERM that it must follow in time."""
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=within_seconds)
    return err


async def test_a_collector_gets_the_tree_and_vllm_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over two real sockets: the spans of /chat and of a batch, and the headers with which vLLM would nest its own; the
    standard's headers for the collector go there and not to vLLM."""
    with collector() as seen:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", seen.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer geheim")
        async with stub_upstream() as stub, gateway(stub) as rig:
            await rig.client.post("/chat", json=BODY, headers={"traceparent": PARENT})
            await rig.batch(items(3), headers={"traceparent": PARENT})
    assert set(seen.paths) == {"/v1/traces"}
    assert all(headers["content-type"] == "application/x-protobuf" for headers in seen.headers)
    assert all(headers["authorization"] == "Bearer geheim" for headers in seen.headers)
    assert all("authorization" not in request.headers for request in stub.requests)
    assert seen.resources[0]["service.name"] == "vision-bench-gateway"
    assert len(seen.spans) == 3 + 1 + 2 * 3
    (chat,), (batch,) = seen.named("POST /chat"), seen.named("POST /chat/batch")
    assert chat.parent_span_id.hex() == batch.parent_span_id.hex() == "b7ad6b7169203331"
    assert {span.trace_id.hex() for span in seen.spans} == {"0af7651916cd43dd8448eb211c80319c"}
    calls = seen.named("chat")
    assert [call.parent_span_id for call in calls] == [chat.span_id, *[batch.span_id] * 3]
    told = sorted(request.headers["traceparent"].split("-")[2] for request in stub.requests)
    assert told == sorted(call.span_id.hex() for call in calls)
    assert abs(chat.end_time_unix_nano - time.time_ns()) < 60e9, "wall clock"
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in seen.spans)


@pytest.mark.parametrize("command", [SERVE, UVICORN], ids=["serve", "uvicorn"])
def test_what_is_left_is_sent_at_the_stop(command: list[str], tmp_path: Path) -> None:
    """SIGTERM a moment after two requests: their spans arrive, by --otlp as by the setting; the log says where they go.
    FastAPI, which would send its own where its variable says so, sends none."""
    with collector() as seen:
        option = ["--otlp", seen.url] if command is SERVE else []
        env = {} if command is SERVE else {"GATEWAY_OTLP_ENDPOINT": seen.url}
        env |= {"FASTAPI_OTEL_AUTO_CONFIGURE": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": seen.url}
        with running([*command, *option], tmp_path, **env) as (process, client):
            assert client.post("/chat", json={}).status_code == 502
            assert client.get("/v1/models").status_code == 502
            err = stopped(process, within_seconds=20)
    assert [span.name for span in seen.spans] == ["POST /chat", "queue", "chat", "GET /v1/models"]
    assert set(seen.paths) == {"/v1/traces"}
    assert f"spans: to {seen.url}" in err
    assert "lost" not in err
    assert process.returncode == (0 if command is SERVE else -signal.SIGTERM)


def test_a_collector_that_is_down_costs_a_line(tmp_path: Path) -> None:
    """Nobody listens: requests are answered as ever, the stop is bounded and clean, and no library says a word of its
    own: every line is an object of ours or uvicorn's."""
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": DOWN, "OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_EXPORTER_OTLP_TIMEOUT": "1.5"}
    with running([*SERVE, "--log-format", "json"], tmp_path, **env) as (process, client):
        for _ in range(8):
            assert client.post("/chat", json={}).json()["error"]["type"] == "connect_failed"
            time.sleep(0.1)
        err = stopped(process, within_seconds=20)
    lines = [json.loads(line) for line in err.splitlines()]
    ours = [line["message"] for line in lines if line["logger"].endswith("spans")]
    assert ours == [
        f"spans: to {DOWN}",
        f"spans: {DOWN} does not take them (ConnectionError); requests go on",
        "spans: 24 of 24 were lost",
    ]
    assert process.returncode == 0
    assert all(line["logger"].startswith(("vision_bench.", "uvicorn.")) for line in lines)


def test_a_collector_that_says_nothing_holds_no_stop_up(tmp_path: Path) -> None:
    """It takes the connection and never answers: the stop waits three seconds for it, not for its ten."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with running([*SERVE, "--otlp", url], tmp_path) as (process, client):
            assert client.post("/chat", json={}).status_code == 502
            began = time.monotonic()
            err = stopped(process, within_seconds=9)
    assert time.monotonic() - began < 9
    assert process.returncode == 0
    assert "spans: 3 of 3 were lost" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("workers", "env", "says"),
    [
        ("1", {"OTEL_TRACES_EXPORTER": "zipkin"}, "error: OTEL_TRACES_EXPORTER='zipkin'"),
        ("2", {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "error: OTEL_EXPORTER_OTLP_TRACES_PROTOCOL='grpc'"),
    ],
)
def test_spans_that_cannot_be_made_stop_the_start(workers: str, env: dict[str, str], says: str, tmp_path: Path) -> None:
    """One line and exit code 4, with several workers too."""
    command = [*SERVE, "--port", "0", "--workers", workers, "--otlp", DOWN]
    process = start(command, tmp_path, VLLM_BASE_URL="http://x/v1", **env)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    (line,) = err.splitlines()
    assert line.startswith(says)


WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from vision_bench.gateway.application import create_app
from vision_bench.gateway.settings import load_settings
create_app(load_settings(vllm_base_url="http://x/v1"))
print("vision_bench.gateway.spans" in sys.modules)
from vision_bench.errors import MissingExtra
try:
    create_app(load_settings(vllm_base_url="http://x/v1", gateway_otlp_endpoint="http://127.0.0.1:4318"))
except MissingExtra as problem:
    print(problem)
"""


def test_a_gateway_without_the_extra(tmp_path: Path) -> None:
    """Without OpenTelemetry's SDK the application is made all the same, and one that is asked for spans names the line
    that installs it. (FastAPI brings the API, which alone makes no spans.)"""
    process = start([sys.executable, "-c", WITHOUT], tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    absent, refusal = out.splitlines()
    assert absent == "False"
    assert refusal.endswith("needs the extra 'otel': pip install 'vision-bench[otel]'")


def test_nothing_of_it_is_loaded_unless_it_is_asked_for(tmp_path: Path) -> None:
    """An application without spans has imported no SDK, though it is installed."""
    program = (
        "import sys; from vision_bench.gateway.application import create_app; "
        "from vision_bench.gateway.settings import load_settings; "
        "create_app(load_settings(vllm_base_url='http://x/v1')); "
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    )
    process = start([sys.executable, "-c", program], tmp_path)
    out, _ = process.communicate(timeout=60)
    assert out.strip() == "[]"
