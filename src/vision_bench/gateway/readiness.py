"""Whether the gateway can work: each vLLM is asked for its models, at most once a second however many ask us."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from vision_bench.errors import BrokenStream, ConnectFailed, HttpFailure, UpstreamError, UpstreamTimeout
from vision_bench.gateway.fleet import Fleet, Upstream

ASK_TIMEOUT_SECONDS = 2.0
KEPT_NS = 1_000_000_000
"""How long an answer serves those who ask later."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """What one vLLM said of itself.

    Attributes:
        is_reachable: it answered, if only with a refusal or nonsense.
        models: the ids it lists; None: it gave no list.
        last_error: why not; else what went wrong with a call last; None: nothing since the start.
    """

    address: str
    is_reachable: bool
    models: tuple[str, ...] | None
    is_set_aside: bool
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """All of them, in the order of VLLM_BASE_URL."""

    servers: tuple[ServerState, ...]

    @property
    def is_ready(self) -> bool:
        """At least one answers, and has a model."""
        return any(server.models for server in self.servers)

    def shown(self, *, to_stranger: bool) -> dict[str, Any]:
        """As /readyz says it. Strangers hear no addresses, names or reasons."""
        servers: list[dict[str, Any]] = []
        for server in self.servers:
            state: dict[str, Any] = {
                "reachable": server.is_reachable,
                "has_model": bool(server.models),
                "set_aside": server.is_set_aside,
            }
            if not to_stranger:
                models = None if server.models is None else list(server.models)
                state = {"address": server.address, **state, "models": models, "last_error": server.last_error}
            servers.append(state)
        return {"ready": self.is_ready, "upstreams": servers}


class Readiness:
    """Asks the fleet, and keeps the answer for a second. Leaving the block ends an asking that runs.

    Made inside the running event loop.
    """

    def __init__(self, fleet: Fleet, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._fleet = fleet
        self._clock = clock
        self._asking: asyncio.Task[Report] | None = None
        self._asked_ns = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def report(self) -> Report:
        """How things stand: asked now, together with others who ask now, or less than a second ago."""
        asking = self._asking
        if asking is None or (asking.done() and self._clock() - self._asked_ns >= KEPT_NS):
            asking = self._asking = asyncio.create_task(self._ask())
        return await asyncio.shield(asking)  # a prober that leaves takes the answer from nobody else

    async def _ask(self) -> Report:
        servers = await asyncio.gather(*(self._state(upstream) for upstream in self._fleet.upstreams))
        self._asked_ns = self._clock()
        return Report(tuple(servers))

    async def _state(self, upstream: Upstream) -> ServerState:
        models, is_reachable, error = None, True, upstream.last_error
        try:
            listed = await upstream.models(self._fleet.authorization(None), timeout_seconds=ASK_TIMEOUT_SECONDS)
            models = tuple(card["id"] for card in listed["data"])
        except HttpFailure as problem:
            error = f"GET /models: {problem}" + ("; set VLLM_API_KEY" if problem.status == 401 else "")
        except UpstreamError as problem:
            is_reachable = not isinstance(problem, ConnectFailed | BrokenStream | UpstreamTimeout)
            error = str(problem)
        return ServerState(upstream.url, is_reachable, models, upstream.is_set_aside, error)
