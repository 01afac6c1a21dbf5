"""``vision-bench serve --workers N``: one address, several processes, and none of them left behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
from tests.integration.gateway_rig import BODY, http_client, until
from tests.integration.stub_upstream import answers, stub_upstream

SRC = Path(__file__).parents[2] / "src"
SERVE = (sys.executable, "-c", "from vision_bench.cli.main import main; main()", "serve", "--workers", "2")


@dataclass
class Running:
    """A gateway of two workers."""

    process: asyncio.subprocess.Process
    log: Path
    client: httpx.AsyncClient

    def workers(self) -> list[int]:
        """The processes that have started, in the order of starting."""
        return [int(number) for number in re.findall(r"Started server process \[(\d+)\]", self.log.read_text())]

    async def ended(self, *, within_seconds: float = 20) -> int:
        """The exit code; every worker must be gone too."""
        async with asyncio.timeout(within_seconds):
            code = await self.process.wait()
        await until(lambda: not any(map(is_there, self.workers())), within_seconds=within_seconds)
        return code


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()  # dead, and nobody has asked for its exit code
    except (ProcessLookupError, FileNotFoundError):
        return False


@asynccontextmanager
async def serving(folder: Path, *arguments: str) -> AsyncIterator[Running]:
    """Both workers are up when the block begins; everything is killed when it ends."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("VLLM_", "MAX_", "GATEWAY_"))}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = folder / "log"
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *SERVE,
            "--port",
            str(port),
            *arguments,
            cwd=folder,
            env={**kept, "PYTHONPATH": str(SRC)},
            stderr=stderr,
            start_new_session=True,
        )
    try:
        async with http_client(f"http://127.0.0.1:{port}") as client:
            running = Running(process, log, client)
            await until(lambda: log.read_text().count("startup complete") >= 2 or process.returncode, within_seconds=60)
            yield running
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def test_a_worker_that_dies_is_replaced_and_sigterm_lets_all_finish(tmp_path: Path) -> None:
    """SIGKILL to a worker: there is another one. SIGTERM: the call that runs has its answer, the exit code is 0,
    nobody is left. The start says how many calls reach vLLM."""
    async with (
        stub_upstream(answers(delay_seconds=1.5)) as stub,
        serving(tmp_path, "--upstream", stub.base_url, "--concurrency", "1") as running,
    ):
        assert "each with its own queue and 1 permits: up to 2 calls at once reach each vLLM" in running.log.read_text()
        os.kill(running.workers()[0], signal.SIGKILL)
        await until(lambda: len(running.workers()) == 3, within_seconds=30)
        first = asyncio.create_task(running.client.post("/chat", json=BODY))
        await until(lambda: stub.running == 1)
        running.process.send_signal(signal.SIGTERM)
        await until(lambda: "Received SIGTERM" in running.log.read_text())
        assert (await first).status_code == 200
        assert await running.ended() == 0
    assert "Traceback" not in running.log.read_text()


async def test_ctrl_c_leaves_nobody_behind(tmp_path: Path) -> None:
    """A terminal sends SIGINT to all of them at once: 130, as with one process."""
    async with serving(tmp_path, "--upstream", "http://127.0.0.1:9/v1") as running:
        for _ in range(8):
            assert (await running.client.post("/chat", json=BODY)).status_code == 502
        os.killpg(running.process.pid, signal.SIGINT)
        assert await running.ended() == 130
    log = running.log.read_text()
    assert "Traceback" not in log
    assert log.count("route=/chat status=502") == 8


async def test_a_supervisor_that_is_killed_takes_its_workers_along(tmp_path: Path) -> None:
    """They see it gone, drain and end by themselves: the address is free again."""
    async with serving(tmp_path, "--upstream", "http://127.0.0.1:9/v1") as running:
        running.process.kill()
        assert await running.ended() == -signal.SIGKILL
