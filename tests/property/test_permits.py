"""No permit is ever lost, whatever is cancelled, times out or breaks, and whenever.

Admission and the client run for real on an event loop whose clock jumps: hours of waiting take no time, and the same
plan always runs the same way.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.jumping_clock import run

from vision_bench.errors import BrokenStream, ConnectFailed, UpstreamError
from vision_bench.gateway.admission import Admission
from vision_bench.gateway.batch import BatchRun
from vision_bench.gateway.exchange import ClientLeft, Exchange, unless_client_leaves
from vision_bench.gateway.fleet import Fleet
from vision_bench.gateway.items import BatchItem, ItemReader
from vision_bench.gateway.metrics import Metrics
from vision_bench.gateway.timings import Timings
from vision_bench.gateway.transport import Payload
from vision_bench.gateway.upstream import VLLMClient

PERMITS = 3
ACQUIRE_TIMEOUT_SECONDS = 5.0
TIMEOUT_SECONDS = 7.0


@dataclass
class World:
    """What happens to every call at every server, and to every probe."""

    plans: dict[str, Plan] = field(default_factory=dict)
    probes: list[bool] = field(default_factory=list)
    """Whether the next probe is answered; afterwards all are."""
    tries: Counter[str] = field(default_factory=Counter)


class FakeTransport:
    """A server that takes as long as it is told to connect, to the headers and for each chunk, or fails there."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.running = 0
        self.most_running = 0

    @asynccontextmanager
    async def post(self, path: str, body: Payload, headers: Mapping[str, str]) -> AsyncIterator[FakeAnswer]:
        name = bytes(body).decode()
        plan = self._world.plans[name]
        self._world.tries[name] += 1
        fails = plan.fails if self._world.tries[name] == 1 else plan.fails_again
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(plan.connect)
            if fails == "connect":
                raise ConnectFailed("refused")
            yield FakeAnswer(plan, fails)
        finally:
            self.running -= 1

    @asynccontextmanager
    async def get(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[FakeAnswer]:
        await asyncio.sleep(1)
        if self._world.probes and not self._world.probes.pop(0):
            raise ConnectFailed("refused")
        yield FakeAnswer(Plan(0, 0, (), "no", "no", None), "no", body=b'{"data": []}')


class FakeAnswer:
    headers: Mapping[str, str] = {"Content-Type": "application/json"}

    def __init__(self, plan: Plan, fails: str, *, body: bytes = b"{}") -> None:
        self.status = 503 if fails == "busy" else 200
        self._chunks = list(plan.chunks)
        self._fails = fails
        self._last = body

    async def read_some(self) -> bytes:
        if self._chunks:
            await asyncio.sleep(self._chunks.pop())
            return b" "
        if self._fails == "body":
            raise BrokenStream("reset")
        last, self._last = self._last, b""
        return last


@dataclass(frozen=True)
class Plan:
    """One request: when it comes, how its first and its second server behave, when its caller leaves (None: stays)."""

    starts: float
    connect: float
    chunks: tuple[float, ...]
    fails: str
    fails_again: str
    leaves: float | None


# Few distinct times, so that things often happen at the very same moment; zero is a bare turn of the loop.
times = st.sampled_from([0.0, 0.0, 1.0, 2.0, 2.5, 5.0, 7.0, 8.0])
failures = st.sampled_from(["no", "no", "no", "connect", "body", "busy"])
plans = st.builds(
    Plan,
    starts=times,
    connect=times,
    chunks=st.lists(times, max_size=3).map(tuple),
    fails=failures,
    fails_again=failures,
    leaves=st.none() | times,
)
servers = st.integers(1, 3)
probes = st.lists(st.booleans(), max_size=6)


class Rig:
    """A client, its fleet of ``count`` servers and their transports. Leaving the block says that nothing is lost."""

    def __init__(self, world: World, count: int) -> None:
        self.world = world
        self.transports = [FakeTransport(world) for _ in range(count)]
        self.admission = Admission(PERMITS, upstreams=count, acquire_timeout_seconds=ACQUIRE_TIMEOUT_SECONDS)
        self.fleet = Fleet({f"http://{n}/v1": transport for n, transport in enumerate(self.transports)}, self.admission)
        self.client = VLLMClient(self.fleet, timeout_seconds=TIMEOUT_SECONDS)

    async def __aenter__(self) -> Rig:
        return self

    async def __aexit__(self, *problem: object) -> None:
        if problem[0] is None:
            await self._settled()
        await self.fleet.__aexit__()
        assert len(asyncio.all_tasks()) <= 2, "this one and wait_for's: no probe is left"

    async def _settled(self) -> None:
        """Every permit is there: as many calls as there are permits run at once, and one more waits."""
        assert (self.admission.in_use, self.admission.waiting) == (0, 0)
        for transport in self.transports:
            assert transport.running == 0
            assert transport.most_running <= PERMITS
        await asyncio.sleep(1000)  # probed until they answer, at most 30 s apart
        assert not any(upstream.is_set_aside for upstream in self.fleet.upstreams)
        async with asyncio.timeout(1):
            held = [self.admission.permit(Timings()) for _ in range(self.admission.permits)]
            for permit in held:
                await permit.__aenter__()
            assert [lane.in_use for lane in self.admission.lanes] == [PERMITS] * len(self.transports)
            for permit in held:
                await permit.__aexit__(None, None, None)


def leaving_after(seconds: float | None) -> Any:
    """An ASGI ``receive`` whose caller leaves then."""

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(100_000 if seconds is None else seconds)
        return {"type": "http.disconnect"}

    return receive


@settings(max_examples=300, deadline=None)
@given(st.lists(plans, min_size=1, max_size=12), servers, probes)
def test_no_permit_is_lost_by_single_calls(requests: list[Plan], count: int, answers: list[bool]) -> None:
    """Callers that leave at any moment, timeouts, refusals and resets, at one server or several: afterwards every
    permit is there and every server back in service; callers that stayed have an answer or an error; no call was
    sent more than twice, or more than once to a single server."""

    async def main() -> None:
        async with Rig(World({str(n): plan for n, plan in enumerate(requests)}, list(answers)), count) as rig:
            outcomes: dict[int, str] = {}

            async def call(index: int) -> None:
                try:
                    async with rig.client.chat(str(index).encode(), request_id=str(index), timings=Timings()) as answer:
                        await answer.read()
                    outcomes[index] = "ok"
                except UpstreamError as problem:
                    outcomes[index] = problem.outcome

            async def caller(index: int, plan: Plan) -> None:
                await asyncio.sleep(plan.starts)
                try:
                    await unless_client_leaves(leaving_after(plan.leaves), call(index))
                except ClientLeft:
                    outcomes[index] = "left"

            await asyncio.gather(*(caller(index, plan) for index, plan in enumerate(requests)))
            assert set(outcomes) == set(range(len(requests)))
            for index, plan in enumerate(requests):
                if plan.leaves is None:
                    assert outcomes[index] != "left"
                    if plan.fails == "no" and sum((plan.connect, *plan.chunks)) < TIMEOUT_SECONDS:
                        assert outcomes[index] in {"ok", "acquire_timeout"}
            tries = rig.world.tries.values()
            assert max(tries, default=0) <= (1 if count == 1 else 2)
            assert sum(tries) - len(tries) <= rig.fleet.moves

    run(main())


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(plans, max_size=6), min_size=1, max_size=4),
    st.lists(st.none() | times, min_size=4, max_size=4),
    servers,
    probes,
)
def test_no_permit_is_lost_by_batches(
    batches: list[list[Plan]], leaves: list[float | None], count: int, answers: list[bool]
) -> None:
    """Batches side by side whose callers leave at any moment, at one server or several: afterwards every permit is
    there, and a batch whose caller stayed has one line an item."""

    async def main() -> None:
        lines: list[list[bytes]] = [[] for _ in batches]
        has_left = [False] * len(batches)

        async def batch(rig: Rig, number: int) -> None:
            entries: list[BatchItem] = []
            for index, plan in enumerate(batches[number]):
                body = f'{{"plan":"{number}-{index}"}}'
                rig.world.plans[body] = plan
                entries += ItemReader(max_items=1).feed(f'{{"items":[{{"id":"{index}","body":{body}}}]}}'.encode())

            async def emit(line: bytes) -> None:
                await asyncio.sleep(0)
                lines[number].append(line)

            try:
                async with BatchRun(
                    rig.client, Exchange(request_id=str(number), metrics=Metrics(upstreams=count))
                ) as run:
                    for entry in entries:
                        run.start(entry)
                    await unless_client_leaves(leaving_after(leaves[number]), run.emit_lines(emit))
            except ClientLeft:
                has_left[number] = True

        async with Rig(World(probes=list(answers)), count) as rig:
            await asyncio.gather(*(batch(rig, number) for number in range(len(batches))))
            for number, batch_plans in enumerate(batches):
                assert len(lines[number]) == len(batch_plans) or has_left[number]

    run(main())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 3), min_size=2, max_size=10))
def test_permits_go_in_the_order_of_asking(durations: list[float]) -> None:
    """First come, first served, however long each call takes."""

    async def main() -> None:
        admission = Admission(1, acquire_timeout_seconds=1000)
        served: list[int] = []

        async def call(index: int, seconds: float) -> None:
            async with admission.permit(Timings()):
                served.append(index)
                await asyncio.sleep(seconds)

        await asyncio.gather(*(call(index, seconds) for index, seconds in enumerate(durations)))
        assert served == sorted(served)

    run(main())
