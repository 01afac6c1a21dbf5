"""Serve an engine until it is told to stop."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

import uvicorn

from vision_bench.engine.chat.errors import ConnectionCut
from vision_bench.engine.chat.model import ChatModel
from vision_bench.engine.chat.server import create_engine
from vision_bench.engine.chat.settings import EngineSettings


def run_engine(
    model: ChatModel,
    settings: EngineSettings,
    *,
    knows_model: Callable[[str], bool] = lambda _: False,
    listener: socket.socket,
    shutdown_timeout_seconds: int,
) -> None:
    """Serve on ``listener``; returns after SIGINT or SIGTERM.

    Streams that still run then get ``shutdown_timeout_seconds``, and vLLM's error event after that.
    """
    app = create_engine(model, settings=settings, knows_model=knows_model)
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=shutdown_timeout_seconds,
        timeout_keep_alive=300,  # a pooled connection outlives the pauses of a measuring tool
    )
    logging.getLogger("uvicorn.error").addFilter(_is_worth_saying)
    uvicorn.Server(config).run(sockets=[listener])


def _is_worth_saying(record: logging.LogRecord) -> bool:
    """Keep what is meant out of the log: a connection cut on purpose, which uvicorn shows with a traceback, and the
    error that no task had to be cancelled at the end."""
    is_cut = record.exc_info is not None and isinstance(record.exc_info[1], ConnectionCut)
    is_empty_cancel = record.msg.startswith("Cancel %s running task") and record.args == (0,)
    return not (is_cut or is_empty_cancel)
