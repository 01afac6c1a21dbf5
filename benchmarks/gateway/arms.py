"""What stands between the callers and the upstream: each arm is one process, started here and ended here."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PERMITS = 16
"""As many as there are callers: the benchmark measures the way through, not the wait for a GPU."""

START_SECONDS = 120.0
STOP_SECONDS = 10.0
_TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to the upstream.

    Attributes:
        pid: the process whose CPU and memory are counted; None for the direct way.
    """

    name: str
    port: int
    path: str
    pid: int | None = None

    def cpu_seconds(self) -> float:
        """CPU time of the process so far, user and system."""
        if self.pid is None:
            return 0.0
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * _TICK_SECONDS

    def reset_peak(self) -> None:
        """Begin a new count of the peak memory."""
        if self.pid is not None:
            Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def peak_bytes(self) -> int:
        """The most memory that was resident since ``reset_peak``."""
        if self.pid is None:
            return 0
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@dataclass(slots=True)
class Upstream:
    """The stub, running. ``first_clip_ns`` is there when it has ended: when its first large body was whole."""

    port: int
    first_clip_ns: int | None = None


@contextmanager
def upstream(*, delay_seconds: float = 0.0) -> Iterator[Upstream]:
    """The stub in its own process."""
    command = [sys.executable, "-m", "benchmarks.gateway.stub", str(delay_seconds)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        stub = Upstream(int(_line(process)))
        yield stub
        _end_input(process)
        told = _line(process)
        stub.first_clip_ns = int(told) if told.isdigit() else None
    finally:
        _stop(process)


def _line(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline().strip() if process.stdout else ""


@contextmanager
def ours(
    upstream_port: int, scratch: Path, *, loop: str = "auto", http: str = "auto", permits: int = PERMITS
) -> Iterator[Arm]:
    """Our gateway over the plain uvicorn line, with uvicorn's own choice of loop and parser unless told otherwise."""
    env = {
        "VLLM_BASE_URL": f"http://127.0.0.1:{upstream_port}/v1",
        "PYTHONPATH": str(ROOT / "src"),
        "VLLM_CONCURRENCY": str(permits),
    }
    extra = ["--loop", loop, "--http", http]
    with _uvicorn("ours", "app:app", env, scratch, extra) as (port, pid):
        yield Arm("ours", port, "/chat", pid)


@contextmanager
def plain(upstream_port: int, scratch: Path, *, permits: int = PERMITS) -> Iterator[Arm]:
    """The yardstick, over the same line."""
    env = {
        "UPSTREAM_URL": f"http://127.0.0.1:{upstream_port}/v1/chat/completions",
        "PYTHONPATH": str(ROOT),
        "VLLM_CONCURRENCY": str(permits),
    }
    with _uvicorn("plain", "benchmarks.gateway.plain:app", env, scratch, ["--no-access-log"]) as (port, pid):
        yield Arm("plain", port, "/chat", pid)


@contextmanager
def _uvicorn(name: str, app: str, env: dict[str, str], scratch: Path, extra: list[str]) -> Iterator[tuple[int, int]]:
    port = _free_port()
    command = [sys.executable, "-m", "uvicorn", app, "--port", str(port), *extra]
    with (scratch / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env={**_without_settings(), **env},
            stdout=log,
            stderr=log,
        )
        try:
            _wait_for(port, process, Path(log.name))
            yield port, process.pid
        finally:
            _stop(process)


def find_nginx() -> str | None:
    """Debian puts it where only root looks."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@contextmanager
def nginx(upstream_port: int, scratch: Path) -> Iterator[Arm]:
    """``proxy_pass`` with request buffering off: one process, kept-alive connections to the upstream."""
    program = find_nginx() or "nginx"
    port = _free_port()
    folder = scratch / "nginx"
    folder.mkdir(exist_ok=True)
    temp = " ".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"""daemon off; master_process off; pid {folder}/pid; error_log stderr;
        events {{ worker_connections 1024; }}
        http {{ access_log off; keepalive_requests 1000000; client_max_body_size 0; {temp}
          upstream stub {{ server 127.0.0.1:{upstream_port}; keepalive {PERMITS}; keepalive_requests 1000000; }}
          server {{ listen 127.0.0.1:{port};
            location / {{ proxy_pass http://stub/v1/chat/completions; proxy_http_version 1.1;
              proxy_set_header Connection ""; proxy_request_buffering off; proxy_buffering off; }} }} }}"""
    )
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, "-c", str(config), "-p", str(folder)], stdout=log, stderr=log)
        try:
            _wait_for(port, process, folder / "log")
            yield Arm("nginx", port, "/", process.pid)
        finally:
            _stop(process)


@contextmanager
def litellm(upstream_port: int, scratch: Path, *, program: Path) -> Iterator[Arm]:
    """LiteLLM's proxy from its own environment, one worker."""
    port = _free_port()
    config = scratch / "litellm.yaml"
    config.write_text(
        "model_list:\n  - model_name: qwen\n    litellm_params:\n      model: openai/qwen\n"
        f"      api_base: http://127.0.0.1:{upstream_port}/v1\n      api_key: none\n"
    )
    command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    env = {
        **_without_settings(),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # loopback, minutes; and it spares it work
        "NO_PROXY": "*",
    }
    with (scratch / "litellm.log").open("w") as log:
        process = subprocess.Popen(command, cwd=scratch, env=env, stdout=log, stderr=log)
        try:
            _wait_for(port, process, Path(log.name))
            yield Arm("litellm", port, "/v1/chat/completions", process.pid)
        finally:
            _stop(process)


def _without_settings() -> dict[str, str]:
    """The environment without what would set a gateway up in another way."""
    kept = ("VLLM_", "MAX_", "GATEWAY_", "OPENAI_")
    return {name: value for name, value in os.environ.items() if not name.startswith(kept)}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} did not start: {log.read_text()[-2000:]}")


def _end_input(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.close()


def _stop(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    _end_input(process)
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
