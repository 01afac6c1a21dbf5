"""The server and the client as processes of their own: started here, watched by the kernel's own counts, ended here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from benchmarks.truth.tree import children_cpu_seconds, pss_bytes

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 20.0
WATCH_SECONDS = 1.0
"""Each look stops the client for about a millisecond: the kernel walks its pages."""
Json = dict[str, Any]


def environment() -> dict[str, str]:
    """Ours, with the tree on the path."""
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}


def client_cores() -> list[int]:
    """The cores of our client and of the floor: the first. Its waker's core is where the kernel likes to put a process
    that waits for a packet: on the server's, each token's stamp would wait for the other program's turn."""
    return sorted(os.sched_getaffinity(0))[:1]


def server_cores() -> list[int]:
    """Those of the servers: the others, if there are any. Other tools may use all cores, which theirs are among."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[1:] or cores


@dataclass(frozen=True, slots=True)
class Server:
    """A running server of known truth: its root URL, its process."""

    url: str
    pid: int
    name: str

    def cpu_seconds(self) -> float:
        """Processor time used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def forget(self) -> None:
        """Begin a new truth."""
        httpx.delete(f"{self.url}/truth", timeout=30, trust_env=False)

    def kept(self) -> tuple[int, list[Json]]:
        """The lean server's: connections opened but this one, and every request in order, named or not."""
        told = httpx.get(f"{self.url}/truth", timeout=60, trust_env=False).json()
        return told["connections"] - 1, told["requests"]

    def truth(self) -> dict[str, Json]:
        """What it kept, by request id: ``first_byte_ns``, ``first_token_ns``, ``last_token_ns``, ``tokens``."""
        if self.name == "lean":
            _, lines = self.kept()
        else:
            text = httpx.get(f"{self.url}/truth", timeout=60, trust_env=False).text
            lines = [json.loads(line) for line in text.splitlines()]
            for line in lines:
                line["first_byte_ns"] = line["arrived_ns"]
        return {line["request_id"]: line for line in lines}


@contextmanager
def lean(*options: object) -> Iterator[Server]:
    """``benchmarks.truth.server``."""
    command = [sys.executable, "-m", "benchmarks.truth.server", *map(str, options)]
    with _running(command) as process:
        os.sched_setaffinity(process.pid, server_cores())
        port = int(process.stdout.readline() if process.stdout else "0")
        yield Server(f"http://127.0.0.1:{port}", process.pid, "lean")


@contextmanager
def declared(*, ttft_ms: float = 50.0, itl_ms: float = 5.0, tokens: int = 64) -> Iterator[Server]:
    """The declared engine of the package, as a user runs it."""
    times = (
        "--preprocess-ms",
        0,
        "--encoder-ms",
        0,
        "--prefill-ms",
        ttft_ms,
        "--decode-ms",
        itl_ms,
        "--tokens",
        tokens,
    )
    command = [sys.executable, "-m", "vision_bench.cli", "engine", "--model", "declared", "--port", "0"]
    with _running([*command, *map(str, times), "--max-num-seqs", "4096"], says_on_stderr=True) as process:
        os.sched_setaffinity(process.pid, server_cores())
        found = re.search(r"(http://\S+)/v1", process.stderr.readline() if process.stderr else "")
        if found is None:
            raise RuntimeError("the engine did not say where it answers")
        _wait_for(found[1])
        yield Server(found[1], process.pid, "declared")


@contextmanager
def _running(command: Sequence[str], *, says_on_stderr: bool = False) -> Iterator[subprocess.Popen[str]]:
    streams = {"stderr" if says_on_stderr else "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env=environment(), text=True, **streams) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
            process.kill()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            httpx.get(f"{url}/health", timeout=5, trust_env=False)
            return
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@dataclass(frozen=True, slots=True)
class ClientRun:
    """One run of ``vision-bench run``: its summary, its measured records, and what the kernel says it took."""

    summary: Json
    records: list[Json]
    exit_status: int
    cpu_seconds: float
    peak_pss_bytes: int

    @property
    def step(self) -> Json:
        """The one step."""
        (step,) = self.summary["steps"]
        return dict(step)


def run_client(workload: Path, url: str, out: Path, *options: object) -> ClientRun:
    """Run the verb as a user does. ``out`` must be new.

    Raises:
        RuntimeError: it made no summary.
    """
    command = [sys.executable, "-m", "vision_bench.cli", "run", str(workload), "--target", url, "--out", str(out)]
    peak = [0]
    stop = threading.Event()
    with subprocess.Popen(
        [*command, *map(str, options), "--json"],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.sched_setaffinity(process.pid, client_cores())
        watch = threading.Thread(target=_watch_pss, args=(process.pid, peak, stop))
        watch.start()
        try:
            before = children_cpu_seconds()
            printed, said = process.communicate()
        finally:
            stop.set()
            watch.join()
    if not printed:
        raise RuntimeError(f"vision-bench run ended with {process.returncode}: {said[-2000:]}")
    summary = json.loads(printed)
    measured = {step["step"] for step in summary["steps"]}
    with (out / "records.jsonl").open(encoding="utf-8") as lines:
        records = [record for record in map(json.loads, lines) if record["step"] in measured]
    return ClientRun(summary, records, process.returncode, children_cpu_seconds() - before, peak[0])


def _watch_pss(pid: int, peak: list[int], stop: threading.Event) -> None:
    """Keep the largest proportional set size; the client starts no process of its own that lasts."""
    while not stop.wait(WATCH_SECONDS):
        peak[0] = max(peak[0], pss_bytes(pid))
