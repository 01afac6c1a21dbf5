"""Live streams put into the gateway's application. Imported only when LIVE_ENABLED is set."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.types import ASGIApp

from vision_bench.gateway import examples, live_models, live_push, live_streams, live_whip
from vision_bench.gateway.live_origins import AnyPage
from vision_bench.gateway.live_questions import Questions
from vision_bench.gateway.live_server import LiveServer
from vision_bench.gateway.live_shapes import FailureShapes, InvalidBody
from vision_bench.gateway.routes import LIVE_CHAT_PATH, chat
from vision_bench.gateway.settings import Settings
from vision_bench.live.failures import StreamFailure


def add_live(app: FastAPI, front: ASGIApp) -> ASGIApp:
    """The routes put into ``app``, whose other routes are there.

    Returns:
        ``front``, with the shapes of the API around it: refusals of every layer have them. What needs a token may be
        read by any page.
    """
    app.add_exception_handler(StreamFailure, live_streams.answer_failure)
    app.add_exception_handler(InvalidBody, live_streams.answer_invalid)
    app.include_router(live_streams.streams_router("/v1beta"))
    app.include_router(live_streams.streams_router("/v1", is_alias=True))
    app.include_router(live_streams.frames_router)
    app.include_router(live_models.router)
    app.include_router(live_push.router)
    app.include_router(live_whip.router)
    app.post(LIVE_CHAT_PATH, summary="/chat, with frames of streams and receipts", responses=examples.CHAT)(chat)
    app.state.questions = Questions(app.state)
    return AnyPage(FailureShapes(front))


@asynccontextmanager
async def running_live(app: FastAPI, settings: Settings) -> AsyncIterator[None]:
    """The streams, for as long as the application runs."""
    app.state.live_models = live_models.Models(app.state.fleet, passthrough_urls=settings.live_passthrough_urls)
    async with LiveServer(settings) as live:
        app.state.live = live
        yield
