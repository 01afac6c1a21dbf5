"""engine.realtime.engine: when events take effect, and who gets the slot; no sockets, no declared times."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from PIL import Image

from vision_bench.engine.realtime import engine as engine_module
from vision_bench.engine.realtime.engine import RealtimeEngine, Rollout, Times
from vision_bench.engine.realtime.late import Deployment
from vision_bench.engine.realtime.protocol import Chunk
from vision_bench.engine.realtime.settings import RealtimeSettings
from vision_bench.engine.realtime.timing import TimingSettings, read_fault
from vision_bench.wire.realtime.control import camera_interaction
from vision_bench.wire.realtime.rollout import num_frames_for_chunks
from vision_bench.wire.realtime.start import Start, read_start

SIDE = 128


def start(chunks: int) -> Start:
    """A request for so many chunks."""
    buffer = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), "green").save(buffer, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    fields = {"prompt": "p", "image_reference": {"image_url": url}, "width": SIDE, "height": SIDE}
    message = {"type": "session.start", "num_frames": num_frames_for_chunks(chunks), **fields}
    return read_start(json.dumps(message), model="m")


def settings(*faults: str, pipeline_chunks: int = 3) -> RealtimeSettings:
    """Everything as fast as it goes."""
    timing = TimingSettings(ttfc_ms=0, chunk_ms=0, faults=tuple(read_fault(fault) for fault in faults))
    return RealtimeSettings(deployment=Deployment(SIDE, SIDE), timing=timing, pipeline_chunks=pipeline_chunks)


class Heard:
    """A listener that keeps what it is told, and does something at one chunk."""

    def __init__(self, name: str = "", log: list[str] | None = None, *, at: int = -1) -> None:
        self.name = name
        self.log = [] if log is None else log
        self.chunks: list[Chunk] = []
        self.times: list[Times] = []
        self.ended = asyncio.Event()
        self.at = at
        self.reaction: Callable[[], object] = lambda: None

    def on_chunk(self, chunk: Chunk, times: Times) -> None:
        self.log.append(f"{self.name}{chunk.index}")
        self.chunks.append(chunk)
        self.times.append(times)
        if chunk.index == self.at:
            # As a client's answer: when the engine is on the next chunk already.
            asyncio.get_running_loop().call_soon(self.reaction)

    def on_ended(self, trailer: bytes, times: Times | None) -> None:
        self.log.append(f"{self.name}{'ended' if trailer else 'aborted'}")
        self.ended.set()

    def on_failed(self, message: str) -> None:
        self.log.append(f"{self.name}failed: {message}")
        self.ended.set()

    def on_dropped(self) -> None:
        self.log.append(f"{self.name}dropped")
        self.ended.set()


@asynccontextmanager
async def running(*faults: str, **options: Any) -> Any:
    """An engine, closed at the end."""
    engine = RealtimeEngine(settings(*faults, **options))
    yield engine
    await engine.close()


@pytest.mark.parametrize("pipeline_chunks", [2, 3, 4])
async def test_an_event_changes_the_chunk_that_the_pipeline_says(pipeline_chunks: int) -> None:
    """Sent on receiving chunk 1: chunk 1 + the pipeline's depth is the first that it changes, made ahead or not."""
    heard = Heard(at=1)
    async with running(pipeline_chunks=pipeline_chunks) as engine:
        rollout: Rollout = engine.submit(start(8), heard)
        event = camera_interaction(event_id="e", translation=(0.0, 0.0, 0.05))
        heard.reaction = lambda: rollout.interact("e", event)
        await heard.ended.wait()
    started = [chunk.index for chunk in heard.chunks if chunk.started_event_ids]
    active = [chunk.index for chunk in heard.chunks if chunk.active_event_ids]
    assert started == [1 + pipeline_chunks]
    assert active == list(range(1 + pipeline_chunks, 8))


async def test_requests_are_served_in_the_order_in_which_they_came() -> None:
    """One after the other, never mixed; each slot begins after the last chunk of the one before."""
    log: list[str] = []
    listeners = [Heard(name, log) for name in "abc"]
    async with running() as engine:
        for listener in listeners:
            engine.submit(start(2), listener)
        for listener in listeners:
            await listener.ended.wait()
    assert log == ["a0", "a1", "aended", "b0", "b1", "bended", "c0", "c1", "cended"]
    for before, after in pairwise(listeners):
        assert after.times[0].slot_ns >= before.times[-1].due_ns


async def test_an_abort_is_heard_at_once_and_nothing_comes_after_it() -> None:
    """Running or waiting; the one behind is served, and a second abort does nothing."""
    log: list[str] = []
    running_one, waiting, last = Heard("a", log, at=0), Heard("b", log), Heard("c", log)
    async with running() as engine:
        rollout = engine.submit(start(50), running_one)
        running_one.reaction = rollout.abort
        queued = engine.submit(start(2), waiting)
        engine.submit(start(1), last)
        queued.abort()
        queued.abort()
        await last.ended.wait()
    assert log == ["baborted", "a0", "aaborted", "c0", "cended"]


async def test_an_endless_stall_holds_the_slot_until_the_abort() -> None:
    """And no longer: the next request is served."""
    first, second = Heard("a", at=0), Heard("b")
    async with running("stall@1#0") as engine:
        rollout = engine.submit(start(3), first)
        engine.submit(start(1), second)
        first.reaction = rollout.abort
        await second.ended.wait()
    assert first.log == ["a0", "aaborted"]
    assert second.log == ["b0", "bended"]


async def test_a_fault_of_our_own_ends_one_session_and_not_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is told without details, the log has them."""
    kinds: Iterator[type] = iter([Broken, engine_module.Generator])

    def next_kind(given: Start) -> object:
        return next(kinds)(given)

    monkeypatch.setattr(engine_module, "Generator", next_kind)
    log: list[str] = []
    first, second = Heard("a", log), Heard("b", log)
    async with running() as engine:
        engine.submit(start(2), first)
        engine.submit(start(1), second)
        await second.ended.wait()
    assert log == ["afailed: Internal engine error", "b0", "bended"]


class Broken:
    """A generator with a bug."""

    def __init__(self, _start: Start) -> None:
        pass

    def chunk(self, _conditions: object, *, is_held: bool) -> bytes:
        raise ZeroDivisionError(is_held)


async def test_closing_ends_what_runs_and_what_waits() -> None:
    """Nobody is told; it does not hang."""
    first, second = Heard("a"), Heard("b")
    async with running("stall@0") as engine:
        engine.submit(start(2), first)
        engine.submit(start(2), second)
        await asyncio.sleep(0)
        assert engine.waiting == 2
    assert (first.log, second.log, engine.waiting) == ([], [], 0)
