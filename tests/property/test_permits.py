"""No permit is ever lost, whatever is cancelled, times out or breaks, and whenever.

Admission and the client run for real on an event loop whose clock jumps: hours of waiting take no time, and the same
plan always runs the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.jumping_clock import run

from vision_bench.errors import BrokenStream, ConnectFailed, UpstreamError
from vision_bench.gateway.admission import Admission, Timings
from vision_bench.gateway.batch import BatchRun
from vision_bench.gateway.exchange import ClientLeft, Exchange, unless_client_leaves
from vision_bench.gateway.items import BatchItem, ItemReader
from vision_bench.gateway.transport import Payload
from vision_bench.gateway.upstream import VLLMClient

PERMITS = 3
ACQUIRE_TIMEOUT_SECONDS = 5.0
TIMEOUT_SECONDS = 7.0


@dataclass
class FakeTransport:
    """An upstream that takes as long as it is told to connect, to the headers and for each chunk, or fails there."""

    running: int = 0
    most_running: int = 0
    closed_early: int = 0
    plans: dict[str, Plan] = field(default_factory=dict)

    @asynccontextmanager
    async def post(self, path: str, body: Payload, headers: Mapping[str, str]) -> AsyncIterator[FakeAnswer]:
        plan = self.plans[bytes(body).decode()]
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(plan.connect)
            if plan.fails == "connect":
                raise ConnectFailed("refused")
            yield FakeAnswer(plan)
        finally:
            self.running -= 1


class FakeAnswer:
    status = 200
    headers: Mapping[str, str] = {"Content-Type": "application/json"}

    def __init__(self, plan: Plan) -> None:
        self._chunks = list(plan.chunks)
        self._fails = plan.fails

    async def read_some(self) -> bytes:
        if not self._chunks:
            if self._fails == "body":
                raise BrokenStream("reset")
            return b""
        await asyncio.sleep(self._chunks.pop())
        return b"{}" if not self._chunks else b" "


@dataclass(frozen=True)
class Plan:
    """One request: when it comes, how its upstream behaves, when its caller leaves (None: stays)."""

    starts: float
    connect: float
    chunks: tuple[float, ...]
    fails: str
    leaves: float | None


# Few distinct times, so that things often happen at the very same moment; zero is a bare turn of the loop.
times = st.sampled_from([0.0, 0.0, 1.0, 2.0, 2.5, 5.0, 7.0, 8.0])
plans = st.builds(
    Plan,
    starts=times,
    connect=times,
    chunks=st.lists(times, max_size=3).map(tuple),
    fails=st.sampled_from(["no", "no", "connect", "body"]),
    leaves=st.none() | times,
)


def client_of(transport: FakeTransport) -> tuple[VLLMClient, Admission]:
    admission = Admission(PERMITS, acquire_timeout_seconds=ACQUIRE_TIMEOUT_SECONDS)
    return VLLMClient(transport, admission, timeout_seconds=TIMEOUT_SECONDS), admission


async def settled(admission: Admission, transport: FakeTransport) -> None:
    """Every permit is there: as many calls as there are permits run at once, and one more waits."""
    assert (admission.in_use, admission.waiting, transport.running) == (0, 0, 0)
    assert transport.most_running <= PERMITS
    async with asyncio.timeout(1):
        held = [admission.permit(Timings()) for _ in range(PERMITS)]
        for permit in held:
            await permit.__aenter__()
        assert admission.in_use == PERMITS
        for permit in held:
            await permit.__aexit__(None, None, None)


def leaving_after(seconds: float | None) -> Any:
    """An ASGI ``receive`` whose caller leaves then."""

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(100_000 if seconds is None else seconds)
        return {"type": "http.disconnect"}

    return receive


@settings(max_examples=300, deadline=None)
@given(st.lists(plans, min_size=1, max_size=12))
def test_no_permit_is_lost_by_single_calls(requests: list[Plan]) -> None:
    """Callers that leave at any moment, timeouts, refusals and resets: afterwards every permit is there, and callers
    that stayed have an answer or an error."""

    async def main() -> None:
        transport = FakeTransport(plans={str(index): plan for index, plan in enumerate(requests)})
        client, admission = client_of(transport)
        outcomes: dict[int, str] = {}

        async def call(index: int) -> None:
            try:
                async with client.chat(str(index).encode(), request_id=str(index), timings=Timings()) as answer:
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
        await settled(admission, transport)

    run(main())


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(plans, max_size=6), min_size=1, max_size=4), st.lists(st.none() | times, min_size=4, max_size=4)
)
def test_no_permit_is_lost_by_batches(batches: list[list[Plan]], leaves: list[float | None]) -> None:
    """Batches side by side whose callers leave at any moment: afterwards every permit is there, and a batch whose
    caller stayed has one line an item."""

    async def main() -> None:
        transport = FakeTransport()
        client, admission = client_of(transport)
        lines: list[list[bytes]] = [[] for _ in batches]
        has_left = [False] * len(batches)

        async def batch(number: int) -> None:
            entries: list[BatchItem] = []
            for index, plan in enumerate(batches[number]):
                body = f'{{"plan":"{number}-{index}"}}'
                transport.plans[body] = plan
                entries += ItemReader(max_items=1).feed(f'{{"items":[{{"id":"{index}","body":{body}}}]}}'.encode())

            async def emit(line: bytes) -> None:
                await asyncio.sleep(0)
                lines[number].append(line)

            try:
                async with BatchRun(client, Exchange(request_id=str(number))) as run:
                    for entry in entries:
                        run.start(entry)
                    await unless_client_leaves(leaving_after(leaves[number]), run.emit_lines(emit))
            except ClientLeft:
                has_left[number] = True

        await asyncio.gather(*(batch(number) for number in range(len(batches))))
        for number, batch_plans in enumerate(batches):
            assert len(lines[number]) == len(batch_plans) or has_left[number]
        await settled(admission, transport)

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
