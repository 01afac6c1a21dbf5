"""How the gateway is run: its log, its socket, its last minute."""

from __future__ import annotations

import ctypes
import errno
import logging
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

from vision_bench.errors import OperatorError
from vision_bench.gateway.logs import LogFormat, log_to
from vision_bench.gateway.protocol import GuardedProtocol

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

KEPT_BYTES = 64 * 1024 * 1024
_LARGEST_FROM_HEAP_BYTES = 32 * 1024 * 1024  # glibc takes no greater one
_MOST_FILES = 65_536
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from glibc's malloc.h


def keep_freed_memory() -> None:
    """Have glibc keep up to ``KEPT_BYTES`` of freed memory, and take buffers up to 32 MiB from it. Elsewhere nothing.

    Left to itself it gives every clip's pages back and takes them anew, cleared by the kernel: that cost more than
    uvicorn's whole work on a 1.6 MB request (2.0 ms of CPU without, 0.8 ms with; docs/decisions/0004).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return
    mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(_M_MMAP_THRESHOLD, _LARGEST_FROM_HEAP_BYTES)


def raise_open_files() -> None:
    """Have the process open as many files as it may, each connection being one: the usual 1024 would turn callers away
    long before there is no room for their bodies. Where the system knows no such limit, nothing."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # macOS has a lower limit that it does not tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def prepare_process() -> None:
    """What a process that serves does first, whichever way it was started."""
    keep_freed_memory()
    raise_open_files()


class _Server(uvicorn.Server):
    """uvicorn's, but told to stop with SIGTERM it ends with exit code 0 when it has done so.

    uvicorn raises the signal anew at the end, and so the process dies of it. A second SIGTERM changes nothing, for
    supervisors repeat themselves; SIGINT after either ends the wait at once.
    """

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGTERM:
            self.should_exit = True
        else:
            super().handle_exit(sig, frame)


def serve(app: FastAPI, *, host: str, port: int, log_format: LogFormat = "text", grace_seconds: float = 30.0) -> None:
    """Serve until SIGINT or SIGTERM. Port 0 takes a free one; the log names it.

    Told to stop, it accepts no more and finishes what runs; what takes longer than ``grace_seconds`` is cancelled.

    Raises:
        OperatorError: the address cannot be had.
    """
    prepare_process()
    config = server_config(app, host=host, port=port, grace_seconds=grace_seconds)
    log_to(sys.stderr, form=log_format)  # after uvicorn has set its own log up, which this may replace
    listener = listen(host, port)
    _Server(config).run(sockets=[listener])


def server_config(
    app: FastAPI | Callable[[], FastAPI], *, host: str, port: int, grace_seconds: float
) -> uvicorn.Config:
    """uvicorn's, as the gateway needs it."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        access_log=False,
        http=GuardedProtocol,
        timeout_graceful_shutdown=grace_seconds,  # type: ignore[arg-type]  # any number of seconds
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. The log names the address: uvicorn does so only for a socket of its own.

    Raises:
        OperatorError: the address cannot be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as problem:  # the latter for a name that is none
        reason = getattr(problem, "strerror", None) or str(problem)
        if getattr(problem, "errno", None) == errno.EADDRINUSE:
            remedy = "another program listens there; choose another with --port"
        else:
            remedy = f"{reason}; choose another with --host and --port"
        raise OperatorError(f"cannot listen on {host}:{port}: {remedy}") from problem
    shown_host = f"[{host}]" if ":" in host else host
    logger.info("listening on http://%s:%d", shown_host, listener.getsockname()[1])
    return listener
