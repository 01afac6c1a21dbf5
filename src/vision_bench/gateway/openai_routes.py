"""What else an OpenAI client asks for: the models. (Its chat route is /chat under another name: ``routes``.)"""

from __future__ import annotations

from typing import Any, Protocol

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from vision_bench.errors import HttpFailure, UpstreamError
from vision_bench.gateway import examples
from vision_bench.gateway.exchange import Refusal, header, refusal_of
from vision_bench.gateway.fleet import Fleet
from vision_bench.gateway.settings import Settings

MODELS_TIMEOUT_SECONDS = 10.0
"""A vLLM that answers at all lists its models at once."""

router = APIRouter()


class Statuses(Protocol):
    """What else is known of the models: live_models has it, where there are live streams."""

    async def with_status(self, listed: dict[str, Any]) -> dict[str, Any]:
        """The list, with one more field of each model."""


@router.get("/v1/models", summary="The models that vLLM serves", responses=examples.MODELS)
async def models(request: Request) -> Response:
    """vLLM's list; of several servers one list, each id once. Paths on the server's disk are left out."""
    return JSONResponse(await _listed(request))


@router.get(
    "/v1/models/{model_id:path}", summary="One model", openapi_extra=examples.MODEL_REQUEST, responses=examples.MODEL
)
async def model(request: Request) -> Response:
    """The entry of that id in the list. An id may hold slashes."""
    # Not an argument: FastAPI would document a 422 that no string can cause.
    model_id = request.path_params["model_id"]
    listed = await _listed(request)
    for card in listed["data"]:
        if card["id"] == model_id:
            return JSONResponse(card)
    names = ", ".join(card["id"] for card in listed["data"]) or "none"
    raise Refusal(
        404, f"the model {model_id!r} does not exist; there are: {names}", type="model_not_found", param="model"
    )


async def _listed(request: Request) -> dict[str, Any]:
    """The list.

    Raises:
        Refusal: vLLM's own error status and message, or ours when no vLLM answered.
    """
    settings: Settings = request.app.state.settings
    fleet: Fleet = request.app.state.fleet
    own = None if settings.gateway_api_keys else header(request.scope, b"authorization")
    timeout_seconds = min(MODELS_TIMEOUT_SECONDS, settings.vllm_timeout_seconds)
    try:
        listed = await fleet.models(own, timeout_seconds=timeout_seconds)
    except HttpFailure as problem:
        raise Refusal(problem.status, problem.message, type=problem.outcome) from problem
    except UpstreamError as problem:
        raise refusal_of(problem) from problem
    known: Statuses | None = getattr(request.app.state, "live_models", None)
    return listed if known is None else await known.with_status(listed)
