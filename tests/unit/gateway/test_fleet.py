"""Which server gets a call, which is set aside, when it is asked again: on a clock that jumps, without sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.jumping_clock import run

from vision_bench.errors import BrokenStream, ConnectFailed, HttpFailure, UpstreamError, UpstreamTimeout
from vision_bench.gateway.admission import Admission
from vision_bench.gateway.fleet import Fleet
from vision_bench.gateway.timings import Timings
from vision_bench.gateway.transport import Payload
from vision_bench.gateway.upstream import VLLMClient

MODELS = {"object": "list", "data": [{"id": "qwen", "root": "/srv/qwen"}]}


class Canned:
    """An answer of one piece."""

    headers: Mapping[str, str] = {"Content-Type": "application/json"}

    def __init__(self, status: int, body: bytes, *, breaks: bool = False) -> None:
        self.status = status
        self._pieces = [body, b""]
        self._breaks = breaks

    async def read_some(self) -> bytes:
        if self._breaks:
            raise BrokenStream("reset")
        return self._pieces.pop(0)


class Server:
    """A server that does as it is told.

    Attributes:
        does: "answer", "refuse", "break" after the head, or an error status.
        seconds: a chat call takes.
        called, probed: the loop's time of every chat call and of every request for the models.
    """

    def __init__(self, does: str | int = "answer", *, seconds: float = 0.0, models: Any = MODELS) -> None:
        self.does = does
        self.seconds = seconds
        self.models = models
        self.authorization: list[str | None] = []
        self.called: list[float] = []
        self.probed: list[float] = []

    @asynccontextmanager
    async def post(self, path: str, body: Payload, headers: Mapping[str, str]) -> AsyncIterator[Canned]:
        self.called.append(asyncio.get_running_loop().time())
        self.authorization.append(headers.get("Authorization"))
        yield await self._does(b'{"choices":[]}', self.seconds)

    @asynccontextmanager
    async def get(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[Canned]:
        assert path == "/models"
        self.probed.append(asyncio.get_running_loop().time())
        self.authorization.append(headers.get("Authorization"))
        yield await self._does(self.models if isinstance(self.models, bytes) else json.dumps(self.models).encode(), 0)

    async def _does(self, body: bytes, seconds: float) -> Canned:
        if self.does == "refuse":
            raise ConnectFailed("refused")
        await asyncio.sleep(seconds)
        if isinstance(self.does, int):
            return Canned(self.does, b'{"error": {"message": "busy"}}')
        return Canned(200, body, breaks=self.does == "break")


def loop_clock() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)


class Rig:
    """A fleet of these servers, and a client for it."""

    def __init__(self, *servers: Server, permits: int = 2, **options: Any) -> None:
        self.admission = Admission(permits, upstreams=len(servers), acquire_timeout_seconds=1000, clock=loop_clock)
        self.fleet = Fleet({f"http://{n}/v1": server for n, server in enumerate(servers)}, self.admission, **options)
        self.client = VLLMClient(self.fleet, timeout_seconds=100, clock=loop_clock)

    async def call(self) -> int:
        """The status of one call, as the caller sees it."""
        async with self.client.chat(b"{}", request_id="x", timings=Timings()) as answer:
            await answer.read()
        return answer.status

    async def __aenter__(self) -> Rig:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.fleet.__aexit__()

    @property
    def set_aside(self) -> list[bool]:
        return [upstream.is_set_aside for upstream in self.fleet.upstreams]


def test_the_server_with_the_fewest_calls_is_next() -> None:
    """Six calls at once to three servers: two each. Then the one that has rested longest, in turn."""

    async def main() -> None:
        servers = [Server(seconds=1), Server(seconds=1), Server(seconds=1)]
        async with Rig(*servers) as rig:
            await asyncio.gather(*(rig.call() for _ in range(6)))
            assert [len(server.called) for server in servers] == [2, 2, 2]
            for _ in range(6):
                await rig.call()
            assert [len(server.called) for server in servers] == [4, 4, 4]

    run(main())


def test_rest_counts_only_among_equals() -> None:
    """One server works on a long call: the short ones all go to the other, though it has rested less."""

    async def main() -> None:
        slow, quick = Server(seconds=10), Server(seconds=1)
        async with Rig(slow, quick, permits=4) as rig:
            long = asyncio.create_task(rig.call())
            await asyncio.sleep(0.1)
            for _ in range(5):
                await rig.call()
            await long
        assert (len(slow.called), len(quick.called)) == (1, 5)

    run(main())


def test_a_slow_server_gets_what_it_can_do() -> None:
    """A permit that comes free goes to whoever waits longest, so the quick server does most of the work."""

    async def main() -> None:
        slow, quick = Server(seconds=10), Server(seconds=1)
        async with Rig(slow, quick, permits=1) as rig:
            await asyncio.gather(*(rig.call() for _ in range(11)))
        assert (len(slow.called), len(quick.called)) == (1, 10)

    run(main())


@pytest.mark.parametrize("does", ["refuse", "break", 502, 503])
def test_a_call_that_a_server_fails_goes_to_another_one(does: str | int) -> None:
    """Not reached, broken off before anything was given, or busy: the caller gets the other one's answer, the server
    is set aside, and everything is counted."""

    async def main() -> None:
        bad, good = Server(does), Server()
        async with Rig(bad, good) as rig:
            assert [await rig.call() for _ in range(3)] == [200, 200, 200]
            assert (len(bad.called), len(good.called)) == (1, 3)
            assert (rig.fleet.moves, rig.set_aside) == (1, [True, False])
            assert [upstream.failures for upstream in rig.fleet.upstreams] == [1, 0]
            assert rig.fleet.upstreams[0].last_error
            assert rig.fleet.upstreams[1].last_error is None

    run(main())


@pytest.mark.parametrize("status", [400, 404, 429, 500, 504])
def test_other_statuses_are_answers(status: int) -> None:
    """They come of the request, or would come again: passed on as they are, from the server that gave them."""

    async def main() -> None:
        first, second = Server(status), Server()
        async with Rig(first, second) as rig:
            assert await rig.call() == status
            assert (rig.fleet.moves, rig.set_aside, second.called) == (0, [False, False], [])

    run(main())


def test_a_call_moves_once() -> None:
    """The second failure is the caller's to see: a body that kills its server does not kill them all."""

    async def main() -> None:
        servers = [Server("break"), Server("break"), Server("break")]
        async with Rig(*servers) as rig:
            with pytest.raises(BrokenStream):
                await rig.call()
            assert [len(server.called) for server in servers] == [1, 1, 0]
            assert rig.set_aside == [True, True, False]

    run(main())


def test_when_all_are_busy_the_caller_is_told_and_one_stays_in_service() -> None:
    """503 from both: the second one's 503 passes as it is, and nobody else is left to set it aside for."""

    async def main() -> None:
        async with Rig(Server(503), Server(503)) as rig:
            assert [await rig.call() for _ in range(2)] == [503, 503]
            assert rig.set_aside == [True, False]

    run(main())


def test_a_moved_call_goes_in_front_of_the_queue() -> None:
    """It has waited its turn; and both tries together have one timeout."""

    async def main() -> None:
        bad, good = Server(503, seconds=5), Server(seconds=10)
        order: list[str] = []
        async with Rig(bad, good, permits=1) as rig:

            async def call(name: str) -> None:
                await rig.call()
                order.append(name)

            await asyncio.gather(*(call(name) for name in ("moved", "first", "waiting")))
        assert order == ["first", "moved", "waiting"]

    run(main())


def test_both_tries_share_one_timeout() -> None:
    """90 s at a server that breaks leave 10 of 100 for the next one."""

    async def main() -> None:
        bad, slow = Server("break", seconds=90), Server(seconds=11)
        timings = Timings()
        async with Rig(bad, slow) as rig:
            with pytest.raises(UpstreamTimeout, match="100 s"):
                async with rig.client.chat(b"{}", request_id="x", timings=timings):
                    raise AssertionError("there was no time for an answer")
            assert asyncio.get_running_loop().time() == 100
            assert rig.admission.in_use == 0

    run(main())


def test_a_server_that_is_set_aside_is_asked_until_it_answers() -> None:
    """After 1, 2, 4, 8, 16, 30, 30 s; then it is back, and the next failure starts at the second wait unless a call
    was answered in between."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        bad, good = Server("refuse"), Server()
        async with Rig(bad, good) as rig:
            await rig.call()
            assert rig.set_aside == [True, False]
            await asyncio.sleep(100)
            waits = [after - before for before, after in zip([0.0, *bad.probed], bad.probed, strict=False)]
            assert waits == [1, 2, 4, 8, 16, 30, 30]
            bad.does = "answer"
            await asyncio.sleep(30)
            assert rig.set_aside == [False, False]
            assert rig.fleet.upstreams[0].setbacks == 8

            bad.does, failed_at = 503, loop.time()  # answers the probe's path no more than the calls
            while not any(rig.set_aside):
                await rig.call()
            await asyncio.sleep(31)
            assert bad.probed[-1] == failed_at + 30, "it has answered nothing since"

            bad.does = "answer"
            await asyncio.sleep(60)
            while rig.fleet.upstreams[0].setbacks:
                await rig.call()
            bad.does, failed_at = "refuse", loop.time()
            while not any(rig.set_aside):
                await rig.call()
            await asyncio.sleep(1.5)
            assert bad.probed[-1] == failed_at + 1
            assert not good.probed

    run(main())


def test_a_server_may_be_away_for_days() -> None:
    """It is asked every 30 s for as long as it takes, and then it is back."""

    async def main() -> None:
        bad = Server("refuse")
        async with Rig(bad, Server()) as rig:
            await rig.call()
            for _ in range(12):
                await asyncio.sleep(8000)
            assert len(bad.probed) > 3000
            bad.does = "answer"
            await asyncio.sleep(30)
            assert rig.set_aside == [False, False]

    run(main(), within_seconds=200_000)


@pytest.mark.parametrize("status", [401, 404])
def test_a_probe_that_is_refused_is_an_answer(status: int) -> None:
    """A server whose key only the callers have, or one without a list, is there."""

    async def main() -> None:
        bad = Server("refuse")
        async with Rig(bad, Server()) as rig:
            await rig.call()
            bad.does = status
            await asyncio.sleep(1.5)
            assert rig.set_aside == [False, False]

    run(main())


def test_when_all_are_set_aside_the_one_that_failed_longest_ago_is_tried() -> None:
    """Each call tries one and fails at once with its reason; the first that is back answers without waiting for a
    probe."""

    async def main() -> None:
        servers = [Server("refuse"), Server("refuse")]
        async with Rig(*servers) as rig:
            with pytest.raises(ConnectFailed):
                await rig.call()
            assert rig.set_aside == [True, True]
            for expected in ([2, 1], [2, 2], [3, 2]):
                await asyncio.sleep(0.001)
                with pytest.raises(ConnectFailed):
                    await rig.call()
                assert [len(server.called) for server in servers] == expected
            servers[1].does = "answer"
            assert await rig.call() == 200
            assert rig.set_aside == [True, False]
            assert rig.fleet.moves == 1

    run(main())


@pytest.mark.parametrize("does", ["refuse", "break", 503])
def test_a_single_server_is_always_tried(does: str | int) -> None:
    """Never set aside, never probed; each caller gets what it says."""

    async def main() -> None:
        server = Server(does)
        async with Rig(server) as rig:
            for _ in range(3):
                if does == 503:
                    assert await rig.call() == 503
                else:
                    with pytest.raises(UpstreamError):
                        await rig.call()
            await asyncio.sleep(100)
            assert (len(server.called), server.probed, rig.set_aside, rig.fleet.moves) == (3, [], [False], 0)
            assert rig.fleet.upstreams[0].failures == (0 if does == 503 else 3)

    run(main())


def test_who_waits_goes_to_the_last_server_that_is_there() -> None:
    """Five calls wait for two servers, then both are gone: each fails by itself, none waits for a probe."""

    async def main() -> None:
        servers = [Server("break", seconds=1), Server("break", seconds=1)]
        async with Rig(*servers, permits=1) as rig:
            outcomes = await asyncio.gather(*(rig.call() for _ in range(5)), return_exceptions=True)
            assert all(isinstance(outcome, BrokenStream) for outcome in outcomes)
            assert (rig.admission.in_use, rig.admission.waiting) == (0, 0)

    run(main())


def test_the_models_of_several_servers_are_one_list() -> None:
    """Each id once; a server that fails is left out while another answers; the first one's reason when none does."""

    async def main() -> None:
        first = Server(models={"data": [{"id": "a", "root": "/srv/a"}, {"id": "b"}]})
        second = Server(models={"data": [{"id": "b"}, {"id": "c", "parent": "a"}]})
        async with Rig(first, second, api_key="k") as rig:
            listed = await rig.fleet.models("callers", timeout_seconds=1)
            assert [card["id"] for card in listed["data"]] == ["a", "b", "c"]
            assert first.authorization == second.authorization == ["Bearer k"]
            first.does = "refuse"
            assert len((await rig.fleet.models(None, timeout_seconds=1))["data"]) == 2
            second.does = 401
            with pytest.raises(ConnectFailed):
                await rig.fleet.models(None, timeout_seconds=1)
            first.does = 403
            with pytest.raises(HttpFailure, match="HTTP 403: busy"):
                await rig.fleet.models(None, timeout_seconds=1)

    run(main())


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b"[" * 100_000, b" " * (1 << 20) + b"{}"])
async def test_what_is_no_model_list_is_said_with_its_address(body: bytes) -> None:
    """And never shown."""
    async with Rig(Server(models=body)) as rig:
        with pytest.raises(UpstreamError, match="http://0/v1"):
            await rig.fleet.models(None, timeout_seconds=5)


async def test_the_callers_key_goes_up_without_one_of_ours() -> None:
    """As for the chat."""
    server = Server()
    async with Rig(server) as rig:
        await rig.fleet.models("Bearer mine", timeout_seconds=5)
    assert server.authorization == ["Bearer mine"]
