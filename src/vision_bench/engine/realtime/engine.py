"""The one slot that all sessions share, and what happens in it: chunks that are there when they were declared to be.

A chunk is made as soon as it is settled what it will show, and then kept until it is due. So the declared times hold as
long as the machine keeps up, and `GET /truth` says by how much they did not.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from vision_bench.engine.clock import sleep_until
from vision_bench.engine.realtime.conditioning import Conditioning, EngineFailure
from vision_bench.engine.realtime.generator import Generator
from vision_bench.engine.realtime.late import late_error
from vision_bench.engine.realtime.protocol import Chunk
from vision_bench.engine.realtime.settings import RealtimeSettings
from vision_bench.engine.realtime.timing import FaultKind, PlannedChunk, plan_session
from vision_bench.wire.realtime.control import Interaction
from vision_bench.wire.realtime.rollout import pixel_frames_in_chunk
from vision_bench.wire.realtime.start import Start

log = logging.getLogger(__name__)
NS_PER_MS = 1_000_000
NS_PER_SECOND = 1_000_000_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Times:
    """Of one chunk, monotonic ns."""

    slot_ns: int
    """Its session got the slot."""
    due_ns: int


class Listener(Protocol):
    """Who is told what became of a request. Called in the event loop; must not wait."""

    def on_chunk(self, chunk: Chunk, times: Times) -> None:
        """A chunk is due."""

    def on_ended(self, trailer: bytes, times: Times | None) -> None:
        """All is done, or an abort has been heard; then there is no trailer, and no time that it was due."""

    def on_failed(self, message: str) -> None:
        """The request cannot be served, or not any more."""

    def on_dropped(self) -> None:
        """The connection is to be cut."""


class RealtimeEngine:
    """Serves requests one after the other, first come first served."""

    def __init__(self, settings: RealtimeSettings) -> None:
        self.settings = settings
        self._slot = asyncio.Lock()  # fair: who waits longest is next
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="realtime")
        self._rollouts: set[Rollout] = set()
        self._started = 0

    @property
    def waiting(self) -> int:
        """Requests that are not finished, the running one among them."""
        return len(self._rollouts)

    def submit(self, start: Start, listener: Listener) -> Rollout:
        """Put a request into the queue."""
        rollout = Rollout(self, start, listener, number=self._started)
        self._started += 1
        self._rollouts.add(rollout)
        rollout.task.add_done_callback(lambda _: self._rollouts.discard(rollout))
        return rollout

    async def in_thread(self, work: Callable[[], T]) -> T:
        """What ``work`` gives, worked out in the engine's one thread."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    @property
    def slot(self) -> asyncio.Lock:
        """Held by the request that is being served."""
        return self._slot

    async def close(self) -> None:
        """End every request; nobody is told."""
        tasks = [rollout.task for rollout in self._rollouts]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._worker.shutdown(wait=True)


class Rollout:
    """One request, from the queue to its end."""

    def __init__(self, engine: RealtimeEngine, start: Start, listener: Listener, *, number: int) -> None:
        self._engine = engine
        self._start = start
        self._listener = listener
        self._number = number
        self._conditioning = self._make_conditioning()
        self._generating: int | None = None
        self._is_over = False
        self._aborted = asyncio.Event()
        self._has_slot = False
        self.task = asyncio.create_task(self._run())

    def abort(self) -> None:
        """Nobody wants the rest. Heard at once; the slot is free when the chunk that is being made is done."""
        if self._is_over or self._aborted.is_set():
            return
        self._aborted.set()
        self._listener.on_ended(b"", None)
        if not self._has_slot:
            self.task.cancel()

    def interact(self, event_id: str, interaction: Interaction) -> None:
        """Take an event.

        Raises:
            EngineFailure: it cannot be followed, and that is the end of the request.
        """
        if not self._is_over:
            self._conditioning.submit(event_id, interaction, generating=self._generating)

    def _make_conditioning(self) -> Conditioning:
        settings = self._engine.settings
        return Conditioning(
            prompt=self._start.prompt,
            num_chunks=self._start.num_chunks,
            capabilities=settings.capabilities,
            script=self._start.extra_params.get("camera_action_script"),
            pipeline_chunks=settings.pipeline_chunks,
        )

    async def _run(self) -> None:
        async with self._engine.slot:
            self._has_slot = True
            try:
                await self._serve(time.monotonic_ns())
            except EngineFailure as failure:
                self._fail(str(failure))
            except Exception:
                # Whatever is wrong with one session must not be the end of the next.
                log.exception("a session failed")
                self._fail("Internal engine error")
            finally:
                self._is_over = True

    def _fail(self, message: str) -> None:
        if not self._aborted.is_set():
            self._listener.on_failed(message)

    async def _serve(self, slot_ns: int) -> None:
        settings = self._engine.settings
        error = late_error(self._start, settings.deployment)
        if error is not None:
            raise EngineFailure(error)
        generator = await self._engine.in_thread(lambda: Generator(self._start))
        plan = plan_session(settings.timing, num_chunks=self._start.num_chunks, session=self._number)
        # An event that comes from now on changes the chunk after the next, so the next can be made already. That buys
        # an interval of patience on a machine that others use too. Where events are faster, it cannot.
        is_made_ahead = settings.pipeline_chunks > 2
        making: deque[tuple[PlannedChunk, asyncio.Task[Chunk]]] = deque()

        def begin() -> None:
            if (planned := next(plan, None)) is not None:
                making.append((planned, asyncio.create_task(self._make(generator, planned))))

        times = Times(slot_ns, slot_ns)
        begin()
        try:
            while making:
                planned, work = making.popleft()
                self._generating = planned.index
                if is_made_ahead:
                    begin()
                chunk = await work
                times = await self._until_due(planned, slot_ns)
                if not self._hand_out(planned, chunk, times):
                    return
                if not is_made_ahead:
                    begin()
        finally:
            for _, work in making:
                work.cancel()
            await asyncio.gather(*(work for _, work in making), return_exceptions=True)
        trailer = await self._engine.in_thread(generator.finish)
        if not self._aborted.is_set():
            self._listener.on_ended(trailer, times)

    def _hand_out(self, planned: PlannedChunk, chunk: Chunk, times: Times) -> bool:
        """Give the chunk away, or do what was planned instead. Whether the rollout goes on to its next chunk or end.

        Raises:
            EngineFailure: that was planned.
        """
        if self._aborted.is_set():
            return False
        match planned.fault:
            case FaultKind.ERROR:
                raise EngineFailure(f"Injected failure at chunk {planned.index}")
            case FaultKind.DROP:
                self._listener.on_dropped()
                return False
            case FaultKind.SHORT:
                return True
        self._listener.on_chunk(chunk, times)
        return not self._aborted.is_set()  # a client that had gone is noticed when a chunk is sent

    async def _make(self, generator: Generator, planned: PlannedChunk) -> Chunk:
        conditions = self._conditioning.next_chunk(planned.index)
        data = b""
        if planned.fault not in (FaultKind.ERROR, FaultKind.DROP, FaultKind.SHORT):
            is_held = planned.fault is FaultKind.EMPTY
            data = await self._engine.in_thread(lambda: generator.chunk(conditions, is_held=is_held))
        return Chunk(
            planned.index,
            pixel_frames_in_chunk(planned.index),
            data,
            conditions.started_event_ids,
            conditions.active_event_ids,
            conditions.completed_event_ids,
        )

    async def _until_due(self, planned: PlannedChunk, slot_ns: int) -> Times:
        """Wait; through an abort too, as a GPU finishes what it is on. Only a stall is cut short by one."""
        if planned.due_ms is None:
            await self._aborted.wait()
            return Times(slot_ns, slot_ns)
        due_ns = slot_ns + round(planned.due_ms * NS_PER_MS)
        if planned.fault is FaultKind.STALL:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._aborted.wait(), (due_ns - time.monotonic_ns()) / NS_PER_SECOND)
        else:
            await sleep_until(due_ns)
        return Times(slot_ns, due_ns)
