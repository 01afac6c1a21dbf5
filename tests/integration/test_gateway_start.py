"""Starting the gateway both ways: what is wrong is one line, what is right stops cleanly."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

SRC = Path(__file__).parents[2] / "src"
SERVE = [sys.executable, "-c", "from vision_bench.cli.main import main; main()", "serve"]
UVICORN = [sys.executable, "-m", "uvicorn", "app:app"]


def start(command: list[str], folder: Path, **env: str) -> subprocess.Popen[str]:
    ours = ("VLLM_", "MAX_", "GATEWAY_", "OTEL_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**kept, "PYTHONPATH": str(SRC), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("command", [SERVE, UVICORN], ids=["serve", "uvicorn"])
@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({}, "VLLM_BASE_URL is not set"),
        ({"VLLM_BASE_URL": "http://x/v1", "MAX_BATCH_ITEMS": "many"}, "MAX_BATCH_ITEMS='many'"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_one_line(
    command: list[str], env: dict[str, str], says: str, tmp_path: Path
) -> None:
    """One line on stderr, nothing on stdout, exit 4, whichever way it is started."""
    process = start([*command, "--port", "0"], tmp_path, **env)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (4, "")
    (line,) = err.splitlines()
    assert line.startswith("error: ")
    assert says in line


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    """Exit 4, the address and the remedy."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start([*SERVE, "--port", str(port)], tmp_path, VLLM_BASE_URL="http://x/v1")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert err.splitlines() == [
        f"error: cannot listen on 127.0.0.1:{port}: another program listens there; choose another with --port"
    ]


@pytest.mark.parametrize("host", ["no.such.name.invalid", "a..b", "x" * 64])
def test_a_host_that_is_none_is_one_line(host: str, tmp_path: Path) -> None:
    """Also one that Python refuses before it asks the system."""
    process = start([*SERVE, "--host", host], tmp_path, VLLM_BASE_URL="http://x/v1")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert re.fullmatch(rf"error: cannot listen on {host}:8001: .*; choose another with --host and --port\n", err)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_log_names_the_address(workers: str, tmp_path: Path) -> None:
    """Of port 0, the one that was taken: nobody could find it otherwise."""
    command = [*SERVE, "--port", "0", "--workers", workers]
    process = start(command, tmp_path, VLLM_BASE_URL="http://127.0.0.1:9/v1")
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if "listening on" in line)
        with httpx.Client(base_url=line.split()[-1], trust_env=False, timeout=30) as client:
            assert client.get("/healthz").json() == {"ok": True}
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    finally:
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="another process's limit is told by /proc")
@pytest.mark.parametrize("command", [SERVE, [*SERVE, "--workers", "2"], UVICORN], ids=["serve", "workers", "uvicorn"])
def test_the_limit_on_open_files_is_raised(command: list[str], tmp_path: Path) -> None:
    """A shell's 1024 is too few for the callers that the buffer has room for; the hard limit is the operator's word."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    limited = ["sh", "-c", 'ulimit -Sn 100; exec "$@"', "sh", *command, "--port", str(port)]
    process = start(limited, tmp_path, VLLM_BASE_URL="http://127.0.0.1:9/v1")
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            wait_for(process, client)
            page = client.get("/metrics").text
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    finally:
        process.kill()
    allowed = float(re.search("^process_max_fds (.*)$", page, re.MULTILINE)[1])  # type: ignore[index]
    assert allowed == min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 65_536)


def wait_for(process: subprocess.Popen[str], client: httpx.Client) -> None:
    """Return when the gateway answers."""
    deadline = time.monotonic() + 60
    while True:
        try:
            assert client.get("/healthz").json() == {"ok": True}
            return
        except httpx.ConnectError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.parametrize("command", [SERVE, UVICORN], ids=["serve", "uvicorn"])
def test_it_reads_dot_env_logs_one_line_a_request_and_stops_on_sigterm(command: list[str], tmp_path: Path) -> None:
    """The same application, settings and log both ways; the connection that is kept alive does not hold the stop up."""
    (tmp_path / ".env").write_text("VLLM_BASE_URL=http://127.0.0.1:9/v1\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = start([*command, "--port", str(port)], tmp_path)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            wait_for(process, client)
            assert client.post("/chat", json={}, headers={"X-Request-Id": "mine"}).status_code == 502
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=20)
    finally:
        process.kill()
    lines = [line for line in err.splitlines() if "request_id=mine" in line]
    assert len(lines) == 1
    assert "route=/chat status=502 items=1" in lines[0]
    assert "POST /chat HTTP/1.1" not in err, "uvicorn's own access line is off"
    assert "Traceback" not in err


@pytest.mark.parametrize("command", [[*SERVE, "--log-format", "json"], UVICORN], ids=["serve", "uvicorn"])
def test_every_line_of_a_json_log_is_an_object(command: list[str], tmp_path: Path) -> None:
    """uvicorn's lines and ours, a refusal of a request that is none, and the stop: nothing else on stderr."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {"VLLM_BASE_URL": "http://127.0.0.1:9/v1"} | ({"GATEWAY_LOG_FORMAT": "json"} if command is UVICORN else {})
    process = start([*command, "--port", str(port)], tmp_path, **env)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            wait_for(process, client)
            client.post("/chat", json={}, headers={"X-Request-Id": "mine"})
            client.get('/x%0A"%20outcome=ok')
        with socket.create_connection(("127.0.0.1", port)) as bad:
            bad.sendall(b"no HTTP at all\r\n\r\n")
            bad.recv(1000)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
    finally:
        process.kill()
    lines = [json.loads(line) for line in err.splitlines()]
    assert all({"ts", "level", "logger"} <= line.keys() for line in lines)
    assert {"uvicorn.error", "vision_bench.gateway.access"} <= {line["logger"] for line in lines}
    assert any("Started server process" in line.get("message", "") for line in lines)
    (call,) = [line for line in lines if line.get("request_id") == "mine"]
    assert (call["route"], call["status"], call["items"], call["failed"]) == ("/chat", 502, 1, None)
    assert isinstance(call["queue_ms"], float)
    assert [line["outcome"] for line in lines if line.get("route") == '/x\n" outcome=ok'] == ["not_found"]
