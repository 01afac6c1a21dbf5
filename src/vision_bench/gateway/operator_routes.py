"""What operators ask: /readyz, /metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from vision_bench.gateway import examples
from vision_bench.gateway.exchange import exchange_of
from vision_bench.gateway.exposition import CONTENT_TYPE, Exposition
from vision_bench.gateway.readiness import Readiness

router = APIRouter()


@router.get("/readyz", summary="Can it work?", responses=examples.READYZ)
async def readyz(request: Request) -> Response:
    """200 when at least one vLLM lists a model, else 503. Each is asked, at most once a second, for at most 2 s.

    Needs no key; without one, where keys are set, it names no addresses, models or errors.
    """
    readiness: Readiness = request.app.state.readiness
    report = await readiness.report()
    exchange = exchange_of(request.scope)
    if not report.is_ready:
        exchange.outcome = "not_ready"
    return JSONResponse(report.shown(to_stranger=exchange.is_stranger), 200 if report.is_ready else 503)


@router.get(
    "/metrics",
    summary="Counts and gauges for Prometheus",
    response_class=PlainTextResponse,
    responses=examples.METRICS,
)
async def metrics(request: Request) -> Response:
    """Prometheus' text format 0.0.4. docs/gateway.md explains every name. Needs a key where the other routes do."""
    # In the event loop, for it reads what the loop writes: in a thread, a dict could change under it.
    exposition: Exposition = request.app.state.exposition
    return Response(exposition.page(), media_type=CONTENT_TYPE)
