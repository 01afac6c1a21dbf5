"""The models as /v1beta lists them: those that can be asked now, and those that could be a while ago."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from vision_bench.errors import UpstreamError
from vision_bench.gateway.fleet import Fleet, Upstream, state_of
from vision_bench.wire.shapes import Json

KEPT_NS = 2_000_000_000
"""How long a list serves those who ask later."""
ASK_TIMEOUT_SECONDS = 2.0
MOST_MODELS = 256

router = APIRouter()


class Models:
    """Asks each upstream for its models, at most every two seconds however many ask.

    A model that is no longer listed is told as unavailable for as long as the gateway runs.

    Args:
        passthrough_urls: the upstreams whose models are somebody else's.
    """

    def __init__(
        self, fleet: Fleet, *, passthrough_urls: tuple[str, ...] = (), clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._fleet = fleet
        self._passthrough_urls = frozenset(passthrough_urls)
        self._clock = clock
        self._cards: dict[str, dict[str, Any]] = {}
        self._places: dict[str, frozenset[int]] = {}
        self._asked_ns: int | None = None
        self._asking: asyncio.Task[None] | None = None

    async def places(self, model: str) -> frozenset[int] | None:
        """The upstreams that list ``model``, by their places in VLLM_BASE_URL; None when none does."""
        await self._refresh()
        return self._places.get(model) or None

    async def listed(self) -> Json:
        """The list, as it is shown."""
        await self._refresh()
        return {"object": "list", "data": [self._shown(name) for name in sorted(self._cards)]}

    async def with_status(self, listed: Json) -> Json:
        """OpenAI's list of models with the ``status`` of each, ``ready`` or ``unavailable``, as one more field."""
        await self._refresh()
        cards = listed["data"]
        # One that is listed to its caller alone, by a key of its own, is not known here.
        told = {card["id"]: self._status(card["id"]) if card["id"] in self._places else "ready" for card in cards}
        return {**listed, "data": [{**card, "status": told[card["id"]]} for card in cards]}

    def _state(self, name: str) -> str:
        return state_of(self._fleet.upstreams[place] for place in self._places.get(name, ()))

    def _status(self, name: str) -> str:
        return "unavailable" if self._state(name) == "unavailable" else "ready"

    def _shown(self, name: str) -> Json:
        card = self._cards[name]
        return {
            "id": name,
            "object": "model",
            "created": card["created"],
            "owned_by": card["owned_by"],
            "status": self._status(name),
            "vision_bench": {"state": self._state(name), "kind": card["kind"]},
        }

    async def _refresh(self) -> None:
        if self._asked_ns is not None and self._clock() - self._asked_ns < KEPT_NS:
            return
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        await asyncio.shield(self._asking)  # who leaves takes the list from nobody else

    async def _ask(self) -> None:
        cards = await asyncio.gather(*(self._of(upstream) for upstream in self._fleet.upstreams))
        places: dict[str, set[int]] = {}
        for place, (upstream, listed) in enumerate(zip(self._fleet.upstreams, cards, strict=True)):
            kind = "passthrough" if upstream.url in self._passthrough_urls else "hosted"
            for card in listed:
                places.setdefault(card["id"], set()).add(place)
                if card["id"] in self._cards or len(self._cards) < MOST_MODELS:
                    created, owner = card.get("created"), card.get("owned_by")
                    self._cards[card["id"]] = {
                        "created": created if isinstance(created, int) else 0,
                        "owned_by": owner if isinstance(owner, str) else "vllm",
                        "kind": kind,
                    }
        self._places = {name: frozenset(found) for name, found in places.items()}
        self._asked_ns = self._clock()

    async def _of(self, upstream: Upstream) -> list[dict[str, Any]]:
        try:
            listed = await upstream.models(self._fleet.authorization(None), timeout_seconds=ASK_TIMEOUT_SECONDS)
        except UpstreamError:
            return []
        cards: list[dict[str, Any]] = listed["data"]
        return cards


@router.get("/v1beta/models", summary="The models that can be asked about streams")
async def models(request: Request) -> Response:
    """`status` is ready or unavailable; the richer state and where the model runs are in `vision_bench`. No key."""
    known: Models = request.app.state.live_models
    return JSONResponse(await known.listed())
