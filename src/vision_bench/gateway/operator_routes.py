"""What operators ask: /metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from vision_bench.gateway import examples
from vision_bench.gateway.exposition import CONTENT_TYPE, Exposition

router = APIRouter()


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
