"""When the gateway is ready, and how seldom vLLM is asked: on a clock that jumps, without sockets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.jumping_clock import run
from tests.unit.gateway.test_fleet import MODELS, Server, loop_clock

from vision_bench.gateway.admission import Admission
from vision_bench.gateway.fleet import Fleet
from vision_bench.gateway.readiness import Readiness


class Silent(Server):
    """Takes a connection and says nothing."""

    async def _does(self, body: bytes, seconds: float) -> Any:
        await asyncio.sleep(3600)


def readiness_of(*servers: Server) -> Readiness:
    admission = Admission(1, upstreams=len(servers), acquire_timeout_seconds=5)
    return Readiness(Fleet({f"http://{n}/v1": s for n, s in enumerate(servers)}, admission), clock=loop_clock)


@pytest.mark.parametrize(
    ("server", "is_ready", "is_reachable", "says"),
    [
        (Server(), True, True, None),
        (Server(models={"data": []}), False, True, None),
        (Server(models=b"<html>"), False, True, "no model list"),
        (Server("refuse"), False, False, "refused"),
        (Server("break"), False, False, "reset"),
        (Server(401), False, True, "set VLLM_API_KEY"),
        (Server(503), False, True, "HTTP 503: busy"),
        (Silent(), False, False, "in 2 s"),
    ],
    ids=["well", "no models", "no list", "refuses", "breaks", "wants a key", "busy", "silent"],
)
def test_what_one_server_says(server: Server, is_ready: bool, is_reachable: bool, says: str | None) -> None:
    """Ready is: it lists a model. Everything else comes with its reason."""

    async def main() -> None:
        async with readiness_of(server) as readiness:
            report = await readiness.report()
        (state,) = report.servers
        assert (report.is_ready, state.is_reachable) == (is_ready, is_reachable)
        assert state.last_error == says if says is None else says in (state.last_error or "")
        assert state.models == (("qwen",) if is_ready else () if says is None else None)

    run(main())


def test_one_of_several_is_enough() -> None:
    """A silent one costs two seconds, and its state says why."""

    async def main() -> None:
        async with readiness_of(Silent(), Server()) as readiness:
            report = await readiness.report()
        assert report.is_ready
        assert [state.is_reachable for state in report.servers] == [False, True]
        assert asyncio.get_running_loop().time() == 2

    run(main())


def test_many_askers_cost_one_request_a_second() -> None:
    """A hundred at once, and more within the second: one request. After it: another one."""

    async def main() -> None:
        server = Server()
        async with readiness_of(server) as readiness:
            await asyncio.gather(*(readiness.report() for _ in range(100)))
            for _ in range(9):
                await asyncio.sleep(0.1)
                await readiness.report()
            assert len(server.probed) == 1
            await asyncio.sleep(0.2)
            await readiness.report()
            assert len(server.probed) == 2

    run(main())


def test_an_asker_that_leaves_takes_the_answer_from_nobody() -> None:
    """The others who asked at the same time still get it."""

    async def main() -> None:
        async with readiness_of(Silent(), Server()) as readiness:
            leaves, stays = (asyncio.create_task(readiness.report()) for _ in range(2))
            await asyncio.sleep(1)
            leaves.cancel()
            assert (await stays).is_ready

    run(main())


def test_leaving_ends_an_asking() -> None:
    """A gateway that stops waits for no silent server."""

    async def main() -> None:
        async with readiness_of(Silent()) as readiness:
            asking = asyncio.create_task(readiness.report())
            await asyncio.sleep(0.1)
        assert asyncio.get_running_loop().time() == pytest.approx(0.1)
        await asyncio.gather(asking, return_exceptions=True)
        assert len(asyncio.all_tasks()) <= 2

    run(main())


def test_strangers_hear_no_addresses_names_or_reasons() -> None:
    """How many servers there are and how they do, and nothing else."""

    async def main() -> None:
        async with readiness_of(Server(), Server("refuse")) as readiness:
            report = await readiness.report()
        shown = report.shown(to_stranger=True)
        assert shown == {
            "ready": True,
            "upstreams": [
                {"reachable": True, "has_model": True, "set_aside": False},
                {"reachable": False, "has_model": False, "set_aside": False},
            ],
        }
        known = report.shown(to_stranger=False)
        assert known["upstreams"][0] == {
            "address": "http://0/v1",
            "reachable": True,
            "has_model": True,
            "set_aside": False,
            "models": [MODELS["data"][0]["id"]],  # type: ignore[index]
            "last_error": None,
        }
        assert "/srv" not in json.dumps(known)

    run(main())
