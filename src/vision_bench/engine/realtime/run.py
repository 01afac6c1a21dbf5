"""Serve generated video until told to stop."""

from __future__ import annotations

import socket

import uvicorn

from vision_bench.engine.realtime.server import create_realtime_engine
from vision_bench.engine.realtime.settings import RealtimeSettings


def server_for(settings: RealtimeSettings) -> uvicorn.Server:
    """The server, not yet started; its 16 MiB a message and its pings are the library's own, as in the original."""
    config = uvicorn.Config(
        create_realtime_engine(settings),
        access_log=False,
        log_level="warning",
        # Video does not get smaller, and trying would cost the event loop what a chunk's due time cannot spare.
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def run_realtime_engine(settings: RealtimeSettings, *, listener: socket.socket) -> None:
    """Serve on ``listener``; returns after SIGINT or SIGTERM. Sessions that still run are told to go away (1012)."""
    server_for(settings).run(sockets=[listener])
