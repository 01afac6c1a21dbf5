"""A chat call to vLLM: take a permit, pass the bytes on untouched, time it."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from vision_bench.errors import BrokenStream, ConnectFailed, UpstreamError, UpstreamTimeout
from vision_bench.gateway.ahead import LEAST_BYTES, Ahead
from vision_bench.gateway.deadline import Deadline
from vision_bench.gateway.fleet import Fleet
from vision_bench.gateway.journal import Call, word_of
from vision_bench.gateway.timings import Timings
from vision_bench.gateway.trace import Trace
from vision_bench.gateway.transport import Payload, TransportAnswer, size_of

CHAT_PATH = "/chat/completions"

HOLD_BYTES = 16 * 1024 * 1024
"""A plain answer is read whole before its first byte goes on, so that a failure is still an error status. Beyond
this size it is passed on as it comes."""

BODILESS_STATUSES = (204, 205, 304)
"""Successes by the letter of HTTP that cannot hold a chat answer."""

BUSY_STATUSES = (502, 503)
"""The server, or a proxy in front of it, has no room or no model for this call; another server may."""


class Answer:
    """vLLM's answer: status, headers and its beginning are here; the rest is read by ``read`` or ``chunks``.

    Attributes:
        held: what has been read of the body. An event stream is held to its first chunk, another answer to its end
            or ``HOLD_BYTES``.
        is_whole: that is all of it.
    """

    def __init__(self, answer: TransportAnswer, elapsed_ms: Callable[[], float]) -> None:
        self._answer = answer
        self.elapsed_ms = elapsed_ms
        """Milliseconds since the permit."""
        self.status = answer.status
        self.headers = answer.headers
        self.held = b""
        self.is_whole = False
        media_type = self.headers.get("Content-Type", "").partition(";")[0]
        self.is_event_stream = media_type.strip().lower() == "text/event-stream"
        """Whether vLLM streams events, asked or not."""

    async def read_ahead(self) -> None:
        """Read what is held back before anything goes to the caller: until then a failure costs no answer."""
        self.held = await self._answer.read_some()
        if self.is_event_stream or not self.held:
            self.is_whole = not self.held
            return
        pieces, size_bytes = [self.held], len(self.held)
        while size_bytes <= HOLD_BYTES and not self.is_whole:
            piece = await self._answer.read_some()
            pieces.append(piece)
            size_bytes += len(piece)
            self.is_whole = not piece
        self.held = b"".join(pieces)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body behind ``held``, as it comes."""
        while chunk := await self._answer.read_some():
            yield chunk

    async def read(self) -> bytes:
        """The whole body."""
        if self.is_whole:
            return self.held
        return b"".join([self.held, *[chunk async for chunk in self.chunks()]])


class VLLMClient:
    """Calls the fleet, never more at once than there are permits."""

    def __init__(self, fleet: Fleet, *, timeout_seconds: float, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._fleet = fleet
        self._timeout_seconds = timeout_seconds
        self._clock = clock

    @asynccontextmanager
    async def chat(
        self,
        body: Payload,
        *,
        request_id: str,
        timings: Timings,
        content_type: str = "application/json",
        authorization: str | None = None,
        trace: Trace | None = None,
        ahead: Ahead | None = None,
    ) -> AsyncIterator[Answer]:
        """Wait for a permit, post ``body``, give the answer. The permit is held to the end of the block.

        Leaving the block early closes the connection, so that vLLM stops generating.

        Of several servers, one that cannot be reached, breaks off before the answer is given or says 502 or 503 is
        set aside, and the call goes to another one: once, in front of the queue, within the same timeout.

        Args:
            body: a chat body as the caller wrote it; it is not looked into.
            timings: ``queue_ms`` and ``upstream_ms`` are filled in, however the call ends; its journal, if it has
                one, too.
            authorization: the caller's own header, sent on when no VLLM_API_KEY is set.
            trace: sent on as it is, but that a journal's call names itself as the parent.
            ahead: what ``ahead`` gave for this very call, if part of it was sent already.

        Raises:
            AcquireTimeout, ConnectFailed, BrokenStream: see their makers.
            UpstreamTimeout: the call, body included, took longer than VLLM_TIMEOUT_SECONDS.
            UpstreamError: a status that cannot be passed on: it is none of HTTP's, or it has no body.
        """
        headers = self._headers(request_id, content_type, authorization, trace)
        if ahead is not None and (self._fleet.admission.is_full or size_of(body) != ahead.size_bytes):
            ahead.close()  # half a request is not to lie at vLLM, or a proxy before it, for the length of a queue
            ahead = None
        began_ns = spent_ns = 0
        has_moved = is_given = False

        def elapsed_ms() -> float:
            return (spent_ns + self._clock() - began_ns) / 1e6

        while True:
            async with self._fleet.admission.permit(timings, at_front=has_moved) as lane:
                timings.upstream = lane.index
                upstream = self._fleet.upstreams[lane.index]
                began_ns = self._clock()
                status: int | None = None
                failure: str | None = None
                call = _noted(timings, upstream.url, began_ns, headers, is_resent=has_moved)
                limit = Deadline(self._timeout_seconds - spent_ns / 1e9)
                try:
                    with limit:
                        async with (
                            upstream.transport.post(CHAT_PATH, body, headers) if ahead is None else ahead.call()
                        ) as raw:
                            timings.head_ms = elapsed_ms()
                            status = raw.status
                            is_busy = status in BUSY_STATUSES
                            if not is_busy or has_moved or not self._fleet.has_other(upstream):
                                answer = await _begun(raw, elapsed_ms)
                                if not is_busy:
                                    self._fleet.answered(upstream)
                                is_given = True
                                yield answer
                                return
                    self._fleet.failed(upstream, f"it answered with status {raw.status}")
                except TimeoutError:
                    if not limit.is_over:
                        raise
                    raise UpstreamTimeout(
                        f"vLLM took longer than {self._timeout_seconds:g} s; "
                        "ask for fewer tokens, or raise VLLM_TIMEOUT_SECONDS"
                    ) from None
                except (ConnectFailed, BrokenStream) as problem:
                    failure = problem.outcome
                    self._fleet.failed(upstream, str(problem), sets_aside=not is_given)
                    if is_given or has_moved or not self._fleet.has_other(upstream):
                        raise
                finally:
                    timings.upstream_ms = elapsed_ms()
                    if call is not None:
                        call.end(self._clock(), status, failure or word_of(sys.exception()))
                spent_ns += self._clock() - began_ns
            has_moved = True
            self._fleet.moves += 1

    def ahead(
        self,
        size_bytes: int,
        *,
        request_id: str,
        content_type: str,
        authorization: str | None,
        trace: Trace | None,
    ) -> Ahead | None:
        """Begin to send a body that comes, to go on with as ``chat``, whose arguments these are; ``close`` must follow.

        None: not a large one, or nobody knows yet which vLLM will be called.
        """
        if size_bytes <= LEAST_BYTES or len(self._fleet.upstreams) > 1:
            return None
        headers = self._headers(request_id, content_type, authorization, trace)
        return Ahead(self._fleet.upstreams[0].transport.head_start(CHAT_PATH, size_bytes, headers), size_bytes)

    def _headers(
        self, request_id: str, content_type: str, authorization: str | None, trace: Trace | None
    ) -> dict[str, str]:
        headers = {"Content-Type": content_type, "X-Request-Id": request_id}
        if (sent_authorization := self._fleet.authorization(authorization)) is not None:
            headers["Authorization"] = sent_authorization
        if trace is not None:
            headers |= trace.headers
        return headers


def _noted(timings: Timings, url: str, now_ns: int, headers: dict[str, str], *, is_resent: bool) -> Call | None:
    """A call that begins, written down if somebody wants to know; it is then the parent that ``headers`` name."""
    if timings.journal is None:
        return None
    call = timings.journal.call(url, now_ns, resend_count=int(is_resent))
    headers["traceparent"] = call.traceparent
    return call


async def _begun(raw: TransportAnswer, elapsed_ms: Callable[[], float]) -> Answer:
    """The answer, read as far as it is held back.

    Raises:
        UpstreamError: a status that cannot be passed on.
    """
    if not 200 <= raw.status <= 599 or raw.status in BODILESS_STATUSES:
        raise UpstreamError(
            f"the server answered with status {raw.status}, which no chat answer has; "
            "is VLLM_BASE_URL vLLM's /v1 endpoint?"
        )
    answer = Answer(raw, elapsed_ms)
    await answer.read_ahead()
    return answer
