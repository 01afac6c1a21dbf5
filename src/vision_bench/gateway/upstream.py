"""A chat call to vLLM: take a permit, pass the bytes on untouched, time it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from vision_bench.errors import UpstreamError, UpstreamTimeout
from vision_bench.gateway.admission import Admission, Timings
from vision_bench.gateway.transport import Payload, Transport, TransportAnswer

CHAT_PATH = "/chat/completions"

HOLD_BYTES = 16 * 1024 * 1024
"""A plain answer is read whole before its first byte goes on, so that a failure is still an error status. Beyond
this size it is passed on as it comes."""

BODILESS_STATUSES = (204, 205, 304)
"""Successes by the letter of HTTP that cannot hold a chat answer."""


class Answer:
    """vLLM's answer: status and headers are here, the body is read by ``read``, or ``read_ahead`` and ``chunks``."""

    def __init__(self, answer: TransportAnswer, elapsed_ms: Callable[[], float]) -> None:
        self._answer = answer
        self.elapsed_ms = elapsed_ms
        """Milliseconds since the permit."""
        self.status = answer.status
        self.headers = answer.headers

    @property
    def is_event_stream(self) -> bool:
        """Whether vLLM streams events, asked or not."""
        media_type = self.headers.get("Content-Type", "").partition(";")[0]
        return media_type.strip().lower() == "text/event-stream"

    async def read_ahead(self) -> tuple[bytes, bool]:
        """What to hold back before anything goes to the client, and whether that is the whole body.

        An event stream is held to its first chunk, another answer to its end or ``HOLD_BYTES``.
        """
        first = await self._answer.read_some()
        if self.is_event_stream or not first:
            return first, not first
        held, size = [first], len(first)
        while size <= HOLD_BYTES:
            chunk = await self._answer.read_some()
            if not chunk:
                return b"".join(held), True
            held.append(chunk)
            size += len(chunk)
        return b"".join(held), False

    async def chunks(self) -> AsyncIterator[bytes]:
        """The rest of the body, as it comes."""
        while chunk := await self._answer.read_some():
            yield chunk

    async def read(self) -> bytes:
        """The rest of the body."""
        return b"".join([chunk async for chunk in self.chunks()])


class VLLMClient:
    """Calls vLLM, never more at once than there are permits."""

    def __init__(
        self,
        transport: Transport,
        admission: Admission,
        *,
        timeout_seconds: float,
        api_key: str | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._transport = transport
        self._admission = admission
        self._timeout_seconds = timeout_seconds
        self._api_key = api_key
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
    ) -> AsyncIterator[Answer]:
        """Wait for a permit, post ``body``, give the answer. The permit is held to the end of the block.

        Leaving the block early closes the connection, so that vLLM stops generating.

        Args:
            body: a chat body as the caller wrote it; it is not looked into.
            timings: ``queue_ms`` and ``upstream_ms`` are filled in, however the call ends.
            authorization: the caller's own header, sent on when no VLLM_API_KEY is set.

        Raises:
            AcquireTimeout, ConnectFailed, BrokenStream: see their makers.
            UpstreamTimeout: the call, body included, took longer than VLLM_TIMEOUT_SECONDS.
            UpstreamError: a status that cannot be passed on: it is none of HTTP's, or it has no body.
        """
        headers = {"Content-Type": content_type, "X-Request-Id": request_id}
        if self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key}"
        elif authorization is not None:
            headers["Authorization"] = authorization
        async with self._admission.permit(timings):
            began_ns = self._clock()

            def elapsed_ms() -> float:
                return (self._clock() - began_ns) / 1e6

            try:
                async with (
                    asyncio.timeout(self._timeout_seconds) as limit,
                    self._transport.post(CHAT_PATH, body, headers) as answer,
                ):
                    if not 200 <= answer.status <= 599 or answer.status in BODILESS_STATUSES:
                        raise UpstreamError(
                            f"the server answered with status {answer.status}, which no chat answer has; "
                            "is VLLM_BASE_URL vLLM's /v1 endpoint?"
                        )
                    timings.head_ms = elapsed_ms()
                    yield Answer(answer, elapsed_ms)
            except TimeoutError:
                if not limit.expired():
                    raise
                raise UpstreamTimeout(
                    f"vLLM took longer than {self._timeout_seconds:g} s; "
                    "ask for fewer tokens, or raise VLLM_TIMEOUT_SECONDS"
                ) from None
            finally:
                timings.upstream_ms = elapsed_ms()
