"""Worker processes behind a queue: whoever waits longest gets the next one that comes free."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Self

from vision_bench.bench.preprocess.worker import Job
from vision_bench.errors import OperatorError

Json = dict[str, Any]

END_SECONDS = 5.0
"""So long a worker has to end after its input did."""
KEPT_LINES = 5
"""Of what a worker says on its error output."""


class WorkerDied(Exception):
    """It answers no more; the message says what is known."""


class Worker:
    """One process. ``hello``: what it told of itself and of its first output."""

    def __init__(self, process: asyncio.subprocess.Process, number: int) -> None:
        self.number = number
        self.hello: Json = {}
        self._process = process
        self._said: deque[str] = deque(maxlen=KEPT_LINES)
        self._listener = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, command: Sequence[str], environ: Mapping[str, str], number: int) -> Self:
        """Begin the process; it is of use after ``prepare``."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(environ)
        )
        return cls(process, number)

    async def prepare(self, job: Job) -> None:
        """Have it make its clips and preprocess each once.

        Raises:
            WorkerDied: it could not.
        """
        self.hello = await self._exchange(json.dumps(asdict(job)))

    async def work(self, clip: int) -> int:
        """Have it preprocess a clip; gives how long that took it, ns.

        Raises:
            WorkerDied: it did not answer.
        """
        return int((await self._exchange(str(clip)))["work_ns"])

    async def _exchange(self, line: str) -> Json:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: S101 - both are pipes
        answer = b""
        with contextlib.suppress(ConnectionError):
            stdin.write(line.encode() + b"\n")
            answer = await stdout.readline()
        if not answer:
            raise WorkerDied(await self._last_words())
        found: Json = json.loads(answer)
        if "error" in found:
            raise WorkerDied(found["error"])
        return found

    async def _last_words(self) -> str:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._listener), END_SECONDS)
            await asyncio.wait_for(self._process.wait(), END_SECONDS)
        said = " | ".join(self._said) or "it said nothing"
        return f"worker {self.number} ended with status {self._process.returncode}: {said}"

    async def _listen(self) -> None:
        """Keep the end of what it says, and its pipe from filling."""
        assert self._process.stderr is not None  # noqa: S101 - a pipe
        with contextlib.suppress(ValueError):  # a line longer than asyncio takes
            async for line in self._process.stderr:
                if text := line.decode(errors="replace").strip():
                    self._said.append(text)

    async def close(self) -> None:
        """End it: by the end of its input, else by force."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), END_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._listener.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listener


class Pool:
    """As many workers of one arm as any step wants, and the queue in front of those that take part."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], job: Job, count: int) -> None:
        self._command, self._environ, self._job, self._count = command, environ, job, count
        self._started: list[Worker] = []
        self._alive: list[Worker] = []
        self._busy: set[asyncio.Task[Any]] = set()
        self._free: asyncio.Queue[Worker | None] = asyncio.Queue()
        self._taking_part = 0

    async def __aenter__(self) -> Self:
        """Start all workers, side by side.

        Raises:
            OperatorError: one of them cannot work; the message holds its reason.
        """
        try:
            for number in range(self._count):
                self._started.append(await Worker.start(self._command, self._environ, number))
            await asyncio.gather(*(worker.prepare(self._job) for worker in self._started))
        except (OSError, WorkerDied) as problem:
            await self.__aexit__()
            raise OperatorError(f"the {self._job.arm} preprocessor cannot run: {problem}") from problem
        except BaseException:
            await self.__aexit__()
            raise
        self._alive = list(self._started)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(worker.close() for worker in self._started))

    @property
    def hellos(self) -> list[Json]:
        """What each worker told of itself."""
        return [worker.hello for worker in self._started]

    async def take_part(self, count: int) -> None:
        """From now on so many workers take from the queue. Waits until what an earlier step left is done."""
        while self._busy:
            await asyncio.wait(self._busy)
        self._free = asyncio.Queue()
        for worker in self._alive[:count]:
            self._free.put_nowait(worker)
        self._taking_part = min(count, len(self._alive))
        if not self._taking_part:
            self._free.put_nowait(None)

    async def next_free(self) -> Worker:
        """The next worker that comes free, in the order of asking.

        Raises:
            WorkerDied: none is left.
        """
        worker = await self._free.get()
        if worker is None:
            self._free.put_nowait(None)  # for whoever waits behind
            raise WorkerDied("no worker is left")
        return worker

    async def work(self, worker: Worker, clip: int) -> int:
        """Let a worker that came free preprocess a clip; it is free again when it has answered, whoever still waits.

        Raises:
            WorkerDied: it did not answer; it takes part no more.
        """
        task = asyncio.create_task(worker.work(clip))
        self._busy.add(task)
        task.add_done_callback(lambda done: self._is_done(worker, done))
        return await asyncio.shield(task)

    def _is_done(self, worker: Worker, task: asyncio.Task[int]) -> None:
        self._busy.discard(task)
        if task.cancelled() or task.exception() is not None:
            self._alive.remove(worker)
            self._taking_part -= 1
            if self._taking_part == 0:
                self._free.put_nowait(None)
        else:
            self._free.put_nowait(worker)
