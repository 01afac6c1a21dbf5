"""The gateway and its upstream as processes of their own, started here and ended here."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS, STOP_SECONDS = 120.0, 60.0
GAUGES = ("requests_in_progress", "buffered_bytes", "requests_waiting_for_room", "permits_in_use", "queue_length")
_SETTINGS = ("VLLM_", "MAX_", "GATEWAY_")


class StubProcess:
    """The stub upstream on one port, through as many lives as it is given."""

    def __init__(self) -> None:
        self.port = 0
        self._process = self._started()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _end(self._process)

    def state(self, command: str = "state") -> dict[str, Any]:
        """The counts of ``stub.State``, since it was last started."""
        print(command, file=self._process.stdin, flush=True)
        told: dict[str, Any] = json.loads(self._process.stdout.readline() if self._process.stdout else "")
        return told

    def kill(self) -> None:
        """End it as the kernel would: every connection is reset or closed, and nobody listens."""
        self._process.kill()
        _end(self._process)

    def start(self) -> None:
        """Start it again where it was."""
        self._process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "benchmarks.soak.stub", "--port", str(self.port)]
        env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(process.stdout.readline() if process.stdout else "")
        return process


class GatewayProcess:
    """``vision-bench serve``, and what the kernel says of it."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self._process = process
        self.port = port
        self.log = log

    @property
    def is_running(self) -> bool:
        """Whether it still is."""
        return self._process.poll() is None

    def resident_bytes(self) -> int:
        """VmRSS of /proc/PID/status."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def open_files(self) -> int:
        """Entries of /proc/PID/fd: sockets, files, pipes."""
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))  # noqa: PTH208

    def gauges(self) -> dict[str, float]:
        """What /metrics says now of ``GAUGES``: its own request is not counted among those in progress."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=STOP_SECONDS)
        try:
            connection.request("GET", "/metrics")
            page = connection.getresponse().read().decode()
        finally:
            connection.close()
        found = dict.fromkeys(GAUGES, 0.0)
        for line in page.splitlines():
            name = line.partition("{")[0].partition(" ")[0].removeprefix("vision_bench_gateway_")
            if name in found:
                found[name] += float(line.rpartition(" ")[2])
        found["requests_in_progress"] -= 1
        return found

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_SECONDS)


@contextmanager
def gateway_process(settings: Mapping[str, object], scratch: Path) -> Iterator[GatewayProcess]:
    """The gateway as users run it, listening on a free port of loopback, its log in ``scratch``."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [sys.executable, "-c", "from vision_bench.cli.main import main; main()", "serve", "--port", str(port)]
    env = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    env |= {"PYTHONPATH": str(ROOT / "src"), **{name: str(value) for name, value in settings.items()}}
    log = scratch / "gateway.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(command, cwd=scratch, env=env, stdout=sink, stderr=sink)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the gateway did not start: {log.read_text()[-2000:]}")
                time.sleep(0.05)
            yield GatewayProcess(process, port, log)
        finally:
            _end(process)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _end(process: subprocess.Popen[Any]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
