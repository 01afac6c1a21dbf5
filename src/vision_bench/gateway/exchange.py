"""One HTTP exchange with a caller, over bare ASGI: read the body, notice that the caller left, answer or refuse."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from vision_bench.errors import AcquireTimeout, ConnectFailed, UpstreamError, UpstreamTimeout
from vision_bench.gateway.metrics import Metrics
from vision_bench.gateway.timings import Timings
from vision_bench.gateway.trace import Trace
from vision_bench.wire.chat import error_body

SCOPE_KEY = "vision_bench.exchange"

LINGER_SECONDS = 2.0
"""How long a refused caller may go on sending before the connection is cut: cut at once, many clients never read
the refusal."""

WATCH_AFTER_SECONDS = 0.02
"""From when on a running call is watched for a caller that leaves. A watcher costs as much as all the rest of a short
call, which is over before anybody can leave."""

CLIENT_LEFT = "client_left"


@dataclass(slots=True)
class Exchange:
    """What the log and the counts say of one request. Made by the middleware, filled in on the way."""

    request_id: str
    metrics: Metrics = field(default_factory=Metrics)
    clock: Callable[[], int] = time.monotonic_ns
    began_ns: int = 0
    """When its head had come."""
    trace: Trace | None = None
    """The caller's, or one that begins here: what goes on to vLLM."""
    route: str | None = None
    """Known before the router has said it, or not at all."""
    status: int | None = None
    outcome: str = "ok"
    is_stranger: bool = False
    """GATEWAY_API_KEYS is set and none of it was shown: only what is public may be said."""
    items: int | None = None
    failed: int | None = None
    timings: Timings = field(default_factory=Timings)
    """Of a batch: the longest wait and the longest call of its items."""
    body_bytes: int = 0
    """Of the request, as far as it was read."""
    is_read: bool = False
    """The body has come to its end."""
    answer_bytes: int = 0

    @property
    def seconds(self) -> float:
        """Since the request's head."""
        return (self.clock() - self.began_ns) / 1e9

    @property
    def stage(self) -> str:
        """How far it has come: one of ``metrics.STAGES``."""
        if self.status is not None:
            return "answer"
        if not self.is_read:
            return "upload"
        return "queue" if self.timings.upstream_ms is None else "upstream"

    @property
    def server_timing(self) -> str:
        """What is known now, as the header's value in ms: what did not happen is not there."""
        timings = self.timings
        queue = "" if timings.queue_ms is None else f"queue;dur={timings.queue_ms:.1f}, "
        upstream = "" if timings.upstream_ms is None else f"upstream;dur={timings.upstream_ms:.1f}, "
        return f"{queue}{upstream}total;dur={self.seconds * 1e3:.1f}"

    def call_ended(self, timings: Timings) -> None:
        """Count one call, which is over or never got its permit: the request's own, or that of a batch's item."""
        self.metrics.call_ended(timings)
        if timings is not self.timings:
            self.timings.queue_ms = _longer(self.timings.queue_ms, timings.queue_ms)
            self.timings.upstream_ms = _longer(self.timings.upstream_ms, timings.upstream_ms)

    def item_ended(self, outcome: str) -> None:
        """Count one item of a batch."""
        self.metrics.items_ended(outcome)
        if outcome != "ok":
            self.failed = (self.failed or 0) + 1

    def stream_begins(self) -> None:
        """The first bytes of an event stream are there for the caller."""
        self.metrics.first_byte_seconds.observe(self.seconds)


def _longer(a: float | None, b: float | None) -> float | None:
    return max((ms for ms in (a, b) if ms is not None), default=None)


def exchange_of(scope: Scope) -> Exchange:
    """The exchange that the middleware put into ``scope``."""
    exchange: Exchange = scope[SCOPE_KEY]
    return exchange


class ClientLeft(Exception):
    """The caller closed the connection; there is nobody to answer."""

    outcome = CLIENT_LEFT


class Refusal(Exception):
    """An answer that the gateway makes itself, in the error shape of OpenAI and vLLM.

    Attributes:
        status: HTTP status; also the ``code`` of the body.
        type: the class of the failure, in one word.
        param: the field at fault, such as ``items[2].id``.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type = type
        self.body = json.dumps(error_body(message, type=type, code=status, param=param), ensure_ascii=False).encode()
        self.headers = dict(headers or {})


def refusal_of(problem: UpstreamError) -> Refusal:
    """A failed call as the answer of /chat: 502 unreachable or broken, 503 no permit in time, 504 too slow."""
    headers = {}
    match problem:
        case AcquireTimeout():
            status = 503
            headers["Retry-After"] = "1"
        case UpstreamTimeout():
            status = 504
        case ConnectFailed() | _:
            status = 502
    return Refusal(status, str(problem), type=problem.outcome, headers=headers)


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of that (lower-case) name."""
    for key, value in scope["headers"]:
        if key == name:
            text: str = value.decode("latin-1")
            return text
    return None


def head_bytes(scope: Scope) -> int:
    """The length of the request's target and headers, nearly: as they came, without method and version."""
    size_bytes = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    for name, value in scope["headers"]:
        size_bytes += len(name) + len(value) + 4
    return size_bytes


def head_too_long(limit_bytes: int) -> Refusal:
    """431 for a head over ``limit_bytes``."""
    message = (
        f"the head of the request is longer than {limit_bytes} bytes (GATEWAY_MAX_HEADER_BYTES); "
        "send fewer or shorter headers"
    )
    return Refusal(431, message, type="headers_too_large")


async def unless_client_leaves(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Run ``work`` to its end, or cancel it when the caller leaves. The body must have been read.

    ``work`` runs in the calling task, and has ended when this returns or raises: its permits are free.

    The connection is watched by waiting for ASGI's disconnect message, here and nowhere else: a second reader
    would take the one message away from the first.

    Raises:
        ClientLeft: the caller left first.
    """
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    has_left = False
    watching: asyncio.Task[None] | None = None

    async def watch() -> None:
        nonlocal has_left
        while (await receive())["type"] != "http.disconnect":
            pass
        has_left = True
        if task is not None:
            task.cancel()

    def begin() -> None:
        nonlocal watching
        watching = loop.create_task(watch())

    timer = loop.call_later(WATCH_AFTER_SECONDS, begin)
    try:
        await work
    except asyncio.CancelledError:
        # Somebody else may have cancelled us too: a server that stops.
        if has_left and task is not None and not task.uncancel():
            raise ClientLeft from None
        raise
    finally:
        timer.cancel()
        if watching is not None:
            watching.cancel()
            await asyncio.sleep(0)  # its one step


async def send_whole(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """A complete answer."""
    await send(start_message(status, {**headers, "Content-Length": str(len(body))}))
    await send({"type": "http.response.body", "body": body})


async def refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal, *, body_unread: bool = False) -> None:
    """Answer with ``refusal``. With ``body_unread``, close afterwards, throwing away what still comes for a while."""
    exchange_of(scope).outcome = refusal.type
    headers = {"Content-Type": "application/json", **refusal.headers}
    if not body_unread:
        await send_whole(send, refusal.status, headers, refusal.body)
        return
    headers |= {"Connection": "close", "Content-Length": str(len(refusal.body))}
    await send(start_message(refusal.status, headers))
    await send({"type": "http.response.body", "body": refusal.body, "more_body": True})
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while (await receive()).get("more_body"):
                pass
    except TimeoutError:
        pass
    await send({"type": "http.response.body", "body": b""})


def start_message(status: int, headers: Mapping[str, str]) -> Message:
    """ASGI's first message of an answer."""
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
    }
