"""One soak: warm up, play the same pass some times, let everything settle after each, and look at what is left."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.soak import stub
from benchmarks.soak.caller import Caller, Seen
from benchmarks.soak.plan import MAX_BODY_BYTES, MAX_ITEMS, Ask, Call, Chapter, Conversation, plan_pass
from benchmarks.soak.processes import GatewayProcess, StubProcess, gateway_process

PERMITS = 8
LANES = 24
CROWD = 48
ACQUIRE_SECONDS = 8.0
WARM_UP_REQUESTS = 200
SAMPLE_SECONDS = 0.5
DOWN_SECONDS = 0.5
QUIET_SECONDS = 4.0
"""After a pass, before memory and files are counted: longer than the gateway keeps an idle connection upstream."""

SETTLE_SECONDS = 20.0
"""For everything to end whose caller is gone without a word: the longest call, and twice the longest pause."""

SETTINGS = {
    "VLLM_CONCURRENCY": PERMITS,
    "VLLM_TIMEOUT_SECONDS": stub.CALL_LIMIT_SECONDS,
    "VLLM_ACQUIRE_TIMEOUT_SECONDS": ACQUIRE_SECONDS,
    "MAX_BATCH_ITEMS": MAX_ITEMS,
    "GATEWAY_UPLOAD_IDLE_SECONDS": 3,
    "GATEWAY_IDLE_SECONDS": 5,
    "GATEWAY_MAX_BODY_BYTES": MAX_BODY_BYTES,
    "GATEWAY_BUFFER_BYTES": 4 * MAX_BODY_BYTES,
}
"""Short waits and little room, so that every limit is met."""


@dataclass(slots=True)
class Pass:
    """What one pass left behind.

    Attributes:
        seen: every request.
        outages: when the upstream was away, as (from, to) on the caller's clock.
        half_open: connections that callers had left open when the permits were counted.
        open_upstream: connections at the stub when all should be over, with those callers still there.
        gauges: what /metrics said then.
        outlived: calls that ran to their time limit although their caller had left.
        most_running: calls at once at the stub, of three times as many as there are permits.
        permit_outcomes: what those calls came to.
        settled_bytes, open_files: of the gateway, after the pass.
    """

    number: int
    seconds: float = 0.0
    seen: list[Seen] = field(default_factory=list)
    outages: list[tuple[float, float]] = field(default_factory=list)
    half_open: int = 0
    open_upstream: int = -1
    gauges: dict[str, float] = field(default_factory=dict)
    outlived: int = 0
    most_running: int = 0
    permit_outcomes: list[str] = field(default_factory=list)
    settled_bytes: int = 0
    open_files: int = 0


@dataclass(slots=True)
class Run:
    """A whole soak.

    Attributes:
        samples: (seconds since the start, resident bytes, number of the pass or 0).
        base_files: open files of the gateway when it had answered its first request.
        exit_code: of the gateway, told to stop with SIGTERM at the end.
    """

    passes: list[Pass] = field(default_factory=list)
    samples: list[tuple[float, int, int]] = field(default_factory=list)
    base_files: int = 0
    exit_code: int | None = None
    log: str = ""


async def soak(*, requests: int, passes: int, seed: int, crowd: int, say: Callable[[str], None]) -> Run:
    """Play ``passes`` passes that together are ``requests`` requests, and say how it goes."""
    run = Run()
    each = -(-requests // passes)
    with tempfile.TemporaryDirectory(prefix="gateway-soak-") as folder, StubProcess() as upstream:
        settings = {**SETTINGS, "VLLM_BASE_URL": f"http://127.0.0.1:{upstream.port}/v1"}
        with gateway_process(settings, Path(folder)) as gateway:
            await _ask_for_health(gateway)
            run.base_files = gateway.open_files()
            sampling = asyncio.create_task(_sample(gateway, run))
            try:
                for number in range(1, passes + 1):
                    await _warm_up(gateway, seed, number)
                    done = Pass(number)
                    run.passes.append(done)
                    plan = plan_pass(seed=seed, requests=each, crowd=crowd, name=f"p{number}-")
                    await _play(plan, gateway, upstream, done)
                    await asyncio.sleep(QUIET_SECONDS)
                    done.settled_bytes, done.open_files = gateway.resident_bytes(), gateway.open_files()
                    say(f"pass {number}: {len(done.seen)} requests in {done.seconds:.0f} s")
            finally:
                sampling.cancel()
                await asyncio.gather(sampling, return_exceptions=True)
            run.exit_code = await asyncio.to_thread(gateway.stop)
            run.log = gateway.log.read_text(errors="replace")
    return run


async def _sample(gateway: GatewayProcess, run: Run) -> None:
    began = time.monotonic()
    while gateway.is_running:
        number = run.passes[-1].number if run.passes else 0
        run.samples.append((time.monotonic() - began, gateway.resident_bytes(), number))
        await asyncio.sleep(SAMPLE_SECONDS)


async def _ask_for_health(gateway: GatewayProcess) -> None:
    """One request and the end of its connection: the gateway has started."""
    await Caller(gateway.port).converse(Conversation((Ask("health", "healthz", "/healthz"),)))
    await asyncio.sleep(0.3)


async def _warm_up(gateway: GatewayProcess, seed: int, number: int) -> None:
    """Good requests only, in no count."""
    sizes = (300, 20_000, 1_600_000)
    conversations = [
        Conversation((Ask(marker, "chat", "/chat", (Call(marker, "ok", sizes[n % 3]),)),))
        for n in range(WARM_UP_REQUESTS)
        if (marker := f"w{number}-{seed}-{n}")
    ]
    await _in_lanes(Caller(gateway.port), conversations, LANES)


async def _play(plan: Sequence[Chapter], gateway: GatewayProcess, upstream: StubProcess, done: Pass) -> None:
    caller = Caller(gateway.port)
    began = time.monotonic()
    for chapter in plan:
        restarting = asyncio.create_task(_restart(upstream, done)) if chapter.title == "restart" else None
        lanes = {"crowd": len(chapter.conversations), "lone": 1}.get(chapter.title, LANES)
        done.seen += await _in_lanes(caller, chapter.conversations, lanes)
        if restarting is not None:
            await restarting
    done.seconds = time.monotonic() - began
    done.gauges = await _settle(gateway, upstream)
    # The callers that went without a word are still "there": nothing may wait for them.
    done.half_open = caller.abandoned
    state = upstream.state("forget")
    done.open_upstream, done.outlived = state["open_connections"], done.outlived + state["outlived"]
    done.permit_outcomes = await _count_permits(gateway, done.number)
    done.most_running = upstream.state()["most_running"]
    caller.close_abandoned()


async def _in_lanes(caller: Caller, conversations: Sequence[Conversation], lanes: int) -> list[Seen]:
    """Every conversation, ``lanes`` at a time, in their order."""
    left: Iterator[Conversation] = iter(conversations)
    seen: list[Seen] = []

    async def lane() -> None:
        for conversation in left:
            seen.extend(await caller.converse(conversation))

    await asyncio.gather(*(lane() for _ in range(lanes)))
    return seen


async def _restart(upstream: StubProcess, done: Pass) -> None:
    """Kill the upstream while it works, and start it again."""
    await asyncio.sleep(0.5)
    done.outlived += upstream.state()["outlived"]
    began = time.monotonic()
    await asyncio.to_thread(upstream.kill)
    await asyncio.sleep(DOWN_SECONDS)
    await asyncio.to_thread(upstream.start)
    done.outages.append((began, time.monotonic()))


async def _settle(gateway: GatewayProcess, upstream: StubProcess) -> dict[str, float]:
    """Until nothing runs and the upstream has no connection, or for long enough to say that something stays."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        gauges = await asyncio.to_thread(gateway.gauges)
        is_quiet = not any(gauges.values()) and not upstream.state()["open_connections"]
        if is_quiet or time.monotonic() > deadline:
            return gauges
        await asyncio.sleep(0.2)


async def _count_permits(gateway: GatewayProcess, number: int) -> list[str]:
    """Three times as many calls as permits, 0.3 s each, at once: what they came to."""
    markers = [f"c{number}-{n}" for n in range(3 * PERMITS)]
    conversations = [
        Conversation((Ask(marker, "chat", "/chat", (Call(marker, "ok", delay_ms=300),)),)) for marker in markers
    ]
    return [one.outcome for one in await _in_lanes(Caller(gateway.port), conversations, len(conversations))]
