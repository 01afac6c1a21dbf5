"""One connection of a caller: uvicorn's httptools protocol, with bounds on what a caller can hold up or fill.

``vision-bench serve`` and ``script/service.sh`` use it; with uvicorn's own command it is
``--http vision_bench.gateway.protocol:GuardedProtocol``. What it adds: the head of a request has a size and a time,
an idle connection and an unread answer have a time, pipelined requests have a number, every request of a connection
learns that its caller has left, ``Upgrade`` is obeyed where there is a WebSocket and nowhere else, and what is no
proper HTTP is refused in the gateway's own error shape, never in the middle of another request's answer.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections import deque
from dataclasses import dataclass
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from vision_bench.gateway.exchange import LINGER_SECONDS, Refusal, head_too_long
from vision_bench.gateway.settings import Settings

logger = logging.getLogger(__name__)

LIMITS_KEY = "connection_limits"
"""Where the application's lifespan leaves its limits for the server (ASGI's lifespan state)."""

MAX_QUEUED_REQUESTS = 32
"""Pipelined requests that wait on one connection. Those behind them are not read: the connection ends after these."""

_SOCKET_PATHS = (b"/live/push/", b"/page/realtime")
"""What stands in the path of a route that is a WebSocket."""

_PROBE_SECONDS, _PROBES = 15, 4
_LONGEST_SILENCE_SECONDS = 32_767  # Linux takes no more


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one connection may hold up."""

    head_bytes: int = 64 * 1024
    """Request line and headers; of a body in chunks also its extensions and trailers, between two pieces."""
    idle_seconds: float = 75.0
    """Without a request, for a whole head, and without a byte taken of an answer."""

    @classmethod
    def of(cls, settings: Settings) -> ConnectionLimits:
        """The limits that the settings name."""
        return cls(head_bytes=settings.gateway_max_header_bytes, idle_seconds=settings.gateway_idle_seconds)


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol within the limits that the application's lifespan left in its state."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits: ConnectionLimits = app_state.get(LIMITS_KEY) or ConnectionLimits()
        self.timeout_keep_alive = self._limits.idle_seconds  # type: ignore[assignment]  # a number of seconds
        self._due: deque[RequestResponseCycle] = deque()  # not yet answered; the first one runs
        self._refusal: Refusal | None = None  # why the parser was stopped from within
        self._is_deaf = False  # nothing that comes is looked at any more
        self._has_open_body = False
        self._has_progressed = False
        self._silent_bytes = 0  # fed since the last sign of progress
        self._transfer_coding: bytes | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._unread_bytes = 0

    # --- asyncio's side

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._expect_a_head()
        _probe_when_silent(transport.get_extra_info("socket"), self._limits.idle_seconds)

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        self._unset_keepalive_if_required()
        self._has_progressed = False
        try:
            self._feed(data)
        except httptools.HttpParserError as problem:
            self._refuse(self._refusal or _malformed(f"this is no HTTP request ({_words(problem)})"))
            return
        if self._is_deaf:  # a WebSocket has taken the connection over, and has times of its own
            return
        self._silent_bytes = 0 if self._has_progressed else self._silent_bytes + len(data)
        if self._silent_bytes > self._limits.head_bytes:
            self._refuse(head_too_long(self._limits.head_bytes))
        elif not self._due and self._idle_timer is None:
            self._expect_a_head()

    def connection_lost(self, exc: Exception | None) -> None:
        # uvicorn tells the last request alone; those before it, one of which runs, would work for nobody.
        for cycle in self._due:
            _disconnect(cycle)
        self._due.clear()
        self.pipeline.clear()
        self._unset_keepalive_if_required()
        self._unset_idle_timer()
        self._unset_unread_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_unread()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unset_unread_timer()

    def timeout_keep_alive_handler(self) -> None:
        self._end_idle()

    # --- the parser's side

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._transfer_coding = None

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._has_open_body:
            return  # a trailer: uvicorn would put it among the headers of the request that runs
        name = name.lower()
        if name == b"transfer-encoding":
            self._transfer_coding = value
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._is_ignored_upgrade():
            return
        self._check_head()
        before = self.cycle
        super().on_headers_complete()
        self._has_progressed = self._has_open_body = True
        self._unset_idle_timer()
        if self.cycle is not before:
            self._due.append(self.cycle)
        if self.pipeline:
            # uvicorn stops reading here, and a socket that is not read does not tell that the caller has left.
            self._read_on_within_bounds()

    def on_body(self, body: bytes) -> None:
        self._has_progressed = True
        super().on_body(body)
        if self.pipeline:
            self._read_on_within_bounds()

    def on_message_complete(self) -> None:
        if self._is_ignored_upgrade():
            return
        self._has_progressed = True
        self._has_open_body = False
        super().on_message_complete()

    # --- uvicorn's side

    def on_response_complete(self) -> None:
        if self._due:
            self._due.popleft()  # answers leave in the order of asking
        super().on_response_complete()
        if self.transport.is_closing() and self.transport.get_write_buffer_size():
            self._watch_unread()

    # --- ours

    def _feed(self, data: bytes) -> None:
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                if self._should_upgrade():
                    self._is_deaf = True
                    self._unset_idle_timer()
                    self.handle_websocket_upgrade()
                    return
                # The parser takes what follows for another protocol: it would lose the body, and read the rest of it
                # as a request. The request is read again, as one that asks for no upgrade.
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own

    def _should_upgrade_to_ws(self) -> bool:
        path = self.url.partition(b"?")[0]
        return super()._should_upgrade_to_ws() and any(part in path for part in _SOCKET_PATHS)

    def _is_ignored_upgrade(self) -> bool:
        parser = self.parser
        return bool(parser.should_upgrade()) and parser.get_method() != b"CONNECT" and not self._should_upgrade()

    def _head_without_upgrade(self) -> bytes:
        lines = [b"%s: %s\r\n" % (name, value) for name, value in self.headers if name != b"upgrade"]
        version = self.parser.get_http_version().encode()
        return b"%s %s HTTP/%s\r\n%s\r\n" % (self.parser.get_method(), self.url, version, b"".join(lines))

    def _check_head(self) -> None:
        """Stop the parser at a head that is too long or means something else to somebody else."""
        size_bytes = len(self.url)
        for name, value in self.headers:
            size_bytes += len(name) + len(value) + 4
        version = self.parser.get_http_version()
        coding = self._transfer_coding
        if size_bytes > self._limits.head_bytes:
            self._stop(head_too_long(self._limits.head_bytes))
        elif self.parser.get_method() == b"CONNECT":
            self._stop(_malformed("this is no proxy: send the request to a path of its own"))
        elif version not in ("1.0", "1.1"):
            self._stop(_malformed(f"HTTP/{version} is not spoken here; use HTTP/1.1"))
        elif coding is not None and (version == "1.0" or coding.strip().lower() != b"chunked"):
            self._stop(_malformed("Transfer-Encoding can be chunked, in HTTP/1.1, and nothing else"))
        elif len(self._due) > MAX_QUEUED_REQUESTS:
            self._stop(_malformed(f"more than {MAX_QUEUED_REQUESTS} requests wait on this connection; open another"))

    def _stop(self, refusal: Refusal) -> None:
        self._refusal = refusal
        raise ValueError(str(refusal))  # ends the parser's work, as an HttpParserError

    def _read_on_within_bounds(self) -> None:
        """Read while requests wait, so that a caller who leaves is noticed, up to what uvicorn reads of one body."""
        if sum(len(cycle.body) for cycle, _ in self.pipeline) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        else:
            self.flow.resume_reading()

    def _refuse(self, refusal: Refusal) -> None:
        """Answer what cannot be understood, once nothing else is to be answered, and end the connection."""
        self._is_deaf = True
        has_begun = False
        if self._has_open_body:  # the fault lies in this body
            cycle = self.cycle
            has_begun = cycle.response_started
            _disconnect(cycle)
            if self._due and self._due[-1] is cycle:
                self._due.pop()
            if self.pipeline and self.pipeline[0][0] is cycle:
                self.pipeline.popleft()
        if self._due:
            self._due[-1].keep_alive = False  # the connection ends with this answer
        elif has_begun:
            self.transport.close()
        else:
            self._answer(refusal)

    def _answer(self, refusal: Refusal) -> None:
        request_id = secrets.token_hex(4)
        headers = [
            *self.server_state.default_headers,
            (b"content-type", b"application/json"),
            (b"content-length", str(len(refusal.body)).encode()),
            (b"connection", b"close"),
            (b"x-request-id", request_id.encode()),
        ]
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        self.transport.write(STATUS_LINE[refusal.status] + lines + b"\r\n" + refusal.body)
        logger.warning(
            "request_id=%s status=%d outcome=%s: %s",
            request_id,
            refusal.status,
            refusal.type,
            str(refusal),
            extra={"request_id": request_id},
        )
        # Closed at once, with bytes unread, the caller would get a reset instead of the answer.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._unset_idle_timer()
        self._idle_timer = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _expect_a_head(self) -> None:
        self._idle_timer = self.loop.call_later(self._limits.idle_seconds, self._end_idle)

    def _unset_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _end_idle(self) -> None:
        # Closing waits until the caller has taken what was sent, which he may never do.
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _watch_unread(self) -> None:
        self._unread_bytes = self.transport.get_write_buffer_size()
        self._unset_unread_timer()
        self._unread_timer = self.loop.call_later(self._limits.idle_seconds, self._check_unread)

    def _unset_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _check_unread(self) -> None:
        if 0 < self.transport.get_write_buffer_size() < self._unread_bytes:
            self._watch_unread()
        elif self.transport.get_write_buffer_size():
            self.transport.abort()


def _malformed(message: str) -> Refusal:
    return Refusal(400, message, type="invalid_request")


def _words(problem: Exception) -> str:
    """The parser's reason: fixed words, nothing of the request. Of the callbacks, only the one for the target fails."""
    return "its target is no path" if isinstance(problem, httptools.HttpParserCallbackError) else str(problem)


def _disconnect(cycle: RequestResponseCycle) -> None:
    cycle.disconnected = True
    cycle.message_event.set()


def _probe_when_silent(connection: socket.socket | None, idle_seconds: float) -> None:
    """Have the system ask whether the caller's machine is still there, where it can: one that lost its power says
    nothing, and its call would run to its end."""
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    silence_seconds = max(1, int(min(idle_seconds, _LONGEST_SILENCE_SECONDS)))
    for name, value in (("TCP_KEEPIDLE", silence_seconds), ("TCP_KEEPINTVL", _PROBE_SECONDS), ("TCP_KEEPCNT", _PROBES)):
        if option := getattr(socket, name, None):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
