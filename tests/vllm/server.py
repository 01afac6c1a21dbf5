"""A real vLLM process: started with flags, watched through its metrics, ended with all its children."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.vllm.environment import VllmEnvironment

MODEL = "tiny-omni"
START_SECONDS = 420
STOP_SECONDS = 15

BASE_FLAGS = (
    "--dtype=bfloat16",
    "--enforce-eager",  # compiling kernels takes longer than all tests
    '--limit-mm-per-prompt={"video":2,"audio":2,"image":2}',
    "--enable-prompt-tokens-details",
    "--enable-request-id-headers",
    # Without it a model that likes tabs fills max_tokens with white space between JSON tokens.
    '--structured-outputs-config={"backend":"xgrammar","disable_any_whitespace":true}',
)
TRUST = "--trust-request-mm-kwargs"
"""Without it vLLM refuses fps and use_audio_in_video in a request."""


def free_port() -> int:
    """A port that nobody holds right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class VllmServer:
    """One running server. ``root`` is its address without ``/v1``."""

    process: subprocess.Popen[bytes]
    port: int
    flags: tuple[str, ...]
    model: str
    log: Path
    started_seconds: float = field(default=0.0)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """What ``VLLM_BASE_URL`` wants."""
        return f"{self.root}/v1"

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def get(self, path: str) -> bytes:
        """The body of a GET."""
        with urllib.request.urlopen(self.root + path, timeout=5) as reply:
            return bytes(reply.read())

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels; 0 when it has no sample yet."""
        page = self.get("/metrics").decode()
        return sum(float(value) for value in re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", page, re.MULTILINE))

    def children(self) -> dict[str, int]:
        """Processes below the server's by name (``VLLM::EngineCor``, ``VLLM::Worker``): its engine and worker."""
        found: dict[str, int] = {}
        for pid in descendants(self.process.pid):
            try:
                found[Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()] = pid
            except OSError:
                continue  # it ended while we looked
        return found

    def tail(self, characters: int = 4000) -> str:
        """The end of its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-characters:]

    def stop(self) -> None:
        """SIGTERM, then SIGKILL for the whole process group: nothing of it outlives the tests."""
        if self.is_running:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def descendants(pid: int) -> list[int]:
    """Children of a process, whichever of its threads started them, their children and so on."""
    direct: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            direct += [int(child) for child in thread.read_text(encoding="utf-8").split()]
    return direct + [below for child in direct for below in descendants(child)]


@dataclass(slots=True)
class VllmServers:
    """Starts a server for a set of flags, one at a time, and keeps it while the flags stay the same.

    A start costs half a minute to a minute on two cores; most of it is Python imports in three processes.
    """

    environment: VllmEnvironment
    logs: Path
    starts: int = 0
    running: VllmServer | None = None
    more: Mapping[str, str] = field(default_factory=dict)
    """Variables of its environment beside those that every server gets."""

    def get(self, *flags: str, model: str = MODEL, max_model_len: int = 4096, max_num_seqs: int = 8) -> VllmServer:
        """The running server when it has these flags and still answers, otherwise a new one."""
        wanted = (
            f"--served-model-name={model}",
            f"--max-model-len={max_model_len}",
            f"--max-num-seqs={max_num_seqs}",
            *BASE_FLAGS,
            *flags,
        )
        if self.running and self.running.flags == wanted and self.running.is_running:
            return self.running
        self.stop()
        self.running = self._start(wanted, model)
        return self.running

    def start_again(self) -> VllmServer:
        """End the running server, if it still runs, and start one with the same flags on the same port."""
        assert self.running is not None, "nothing was started yet"
        before = self.running
        self.stop()
        self.running = self._start(before.flags, before.model, port=before.port)
        return self.running

    def stop(self) -> None:
        """End the running server, if there is one."""
        if self.running:
            self.running.stop()
            self.running = None

    def _start(self, flags: tuple[str, ...], model: str, port: int | None = None) -> VllmServer:
        self.starts += 1
        port = port or free_port()
        log = self.logs / f"vllm-{self.starts}.log"
        command = [self.environment.vllm, "serve", self.environment.checkpoint, "--host=127.0.0.1", f"--port={port}"]
        begun = time.monotonic()
        with log.open("wb") as file:
            process = subprocess.Popen(
                # Three busy processes must leave the gateway and the client a core.
                ["nice", "-n", "10", *command, *flags],
                env={**self.environment.variables(os.environ), **self.more},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        server = VllmServer(process, port, flags, model, log)
        try:
            while time.monotonic() - begun < START_SECONDS and server.is_running:
                try:
                    server.get("/health")
                except OSError:
                    time.sleep(0.5)
                else:
                    server.started_seconds = time.monotonic() - begun
                    return server
        except BaseException:  # somebody presses Ctrl-C: nobody else knows of it yet
            server.stop()
            raise
        server.stop()
        raise AssertionError(f"vLLM did not start in {START_SECONDS} s with {json.dumps(flags)}:\n{server.tail()}")
