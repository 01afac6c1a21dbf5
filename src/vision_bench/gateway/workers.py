"""Several processes on one address: uvicorn's supervisor, within the rules of one process."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing import connection

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess

from vision_bench.errors import OperatorError
from vision_bench.gateway.logs import LogFormat, log_to
from vision_bench.gateway.otlp import wanted_endpoint
from vision_bench.gateway.serving import listen, prepare_process, server_config
from vision_bench.gateway.settings import Settings

logger = logging.getLogger(__name__)

UNRESPONSIVE_SECONDS = 30
"""A worker that does not answer its supervisor for so long is killed and replaced. Its calls are lost with it."""


def serve_workers(make_app: Callable[[], FastAPI], settings: Settings, *, workers: int, host: str, port: int) -> None:
    """Serve from ``workers`` processes until SIGINT or SIGTERM, then have each finish what runs.

    A worker that dies is replaced; workers end by themselves when this process is killed. What must not exist twice
    has to refuse here, before the address is taken: workers share nothing but the socket.

    Args:
        make_app: called once in each worker, so it must be picklable: settings travel with it.

    Raises:
        OperatorError: the address cannot be had, the workers cannot start, spans are wanted and cannot be made, or
            live streams are, which exist once.
        KeyboardInterrupt: it was SIGINT.
    """
    if settings.live_enabled:
        raise OperatorError(
            f"LIVE_ENABLED=true needs one process, not {workers}: a stream lives in the one that its camera reached; "
            "leave --workers out, or serve streams from a gateway of their own"
        )
    wanted_endpoint(settings.gateway_otlp_endpoint, os.environ)  # refused here, not once in each worker
    log_format, permits = settings.gateway_log_format, settings.vllm_concurrency
    make = partial(_prepared, make_app, log_format)
    config = server_config(make, host=host, port=port, grace_seconds=settings.gateway_shutdown_grace_seconds)
    config.factory = True
    config.workers = workers
    config.timeout_worker_healthcheck = UNRESPONSIVE_SECONDS
    log_to(sys.stderr, form=log_format)  # after uvicorn has set its own log up, which this may replace
    listener = listen(host, port)
    logger.info(
        "workers=%d, each with its own queue and %d permits: up to %d calls at once reach each vLLM. "
        "Limits on bytes and on keys, and /metrics, are of one worker too.",
        workers,
        permits,
        workers * permits,
    )
    supervisor = _Supervisor(config, [listener])
    supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise OperatorError("a worker could not start; the log above says why")
    if supervisor.is_interrupted:
        raise KeyboardInterrupt


class _Supervisor(Multiprocess):
    """uvicorn's, but told only to stop: SIGHUP, SIGTTIN and the like mean what they mean to one process."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        kept = {number: signal.getsignal(number) for number in SIGNALS if number not in (signal.SIGINT, signal.SIGTERM)}
        super().__init__(config, sockets)
        for number, handler in kept.items():
            signal.signal(number, handler)
        self.is_interrupted = False

    def terminate_all(self) -> None:
        for listener in self.sockets:
            listener.close()  # else callers would wait in its backlog for workers that are leaving
        super().terminate_all()

    def handle_int(self) -> None:
        self.is_interrupted = True
        super().handle_int()


def _prepared(make_app: Callable[[], FastAPI], log_format: LogFormat) -> FastAPI:
    """In a worker: what ``serve`` does for one process, and an end to follow the supervisor's."""
    prepare_process()
    log_to(sys.stderr, form=log_format)
    threading.Thread(target=_end_with_supervisor, daemon=True).start()
    return make_app()


def _end_with_supervisor() -> None:
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        connection.wait([supervisor.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
