"""Many bodies in one request: each sent as soon as it is there, given back a line each as they finish."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Self

import msgspec

from vision_bench.errors import BrokenStream, HttpFailure, UpstreamError
from vision_bench.gateway.exchange import Exchange
from vision_bench.gateway.items import BatchItem
from vision_bench.gateway.timings import Timings
from vision_bench.gateway.upstream import Answer, VLLMClient
from vision_bench.wire.chat import error_message
from vision_bench.wire.chat_stream import StreamReader
from vision_bench.wire.ndjson import dump_line, finite

logger = logging.getLogger(__name__)

# Allowed in JSON, but line ends to str.splitlines and to clients built on it.
_FALSE_LINE_ENDS = {"\u0085": rb"\u0085", "\u2028": rb"\u2028", "\u2029": rb"\u2029"}


class _ErrorField(msgspec.Struct):
    error: Any = None


class BatchRun:
    """The calls of one batch. Leaving the block cancels those that run, and returns when their permits are free.

    Attributes:
        count: items started so far.
    """

    def __init__(
        self, client: VLLMClient, exchange: Exchange, *, authorization: str | None = None, queue_ms: float | None = None
    ) -> None:
        self._client = client
        self._exchange = exchange
        self._authorization = authorization
        self._queue_ms = queue_ms
        self._running: set[asyncio.Task[None]] = set()
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.count = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._exchange.metrics.items_ended("cancelled", sum(task.cancelled() for task in running))

    def start(self, item: BatchItem) -> asyncio.Task[None]:
        """Have this item ask for a permit now, behind those that were started before it. The task holds its bytes."""
        task = asyncio.create_task(self._call(item, f"{self._exchange.request_id}-{self.count}"))
        self.count += 1
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def emit_lines(self, emit: Callable[[bytes], Awaitable[None]]) -> None:
        """``emit`` a line for every item that was started, in the order in which they finish.

        A failed item is a line; the others go on.
        """
        for _ in range(self.count):
            await emit(await self._lines.get())

    async def _call(self, item: BatchItem, request_id: str) -> None:
        journal = self._exchange.timings.journal
        timings = Timings(queue_ms=self._queue_ms, journal=journal and journal.of_item(request_id))
        self._lines.put_nowait(await self._answer(item, request_id, timings))

    async def _answer(self, item: BatchItem, request_id: str, timings: Timings) -> bytes:
        exchange = self._exchange
        call = self._client.chat(
            memoryview(item.body),
            request_id=request_id,
            timings=timings,
            authorization=self._authorization,
            trace=exchange.trace,
        )
        try:
            async with call as answer:
                payload = await answer.read()
            return _line(item.id, answer, round(timings.upstream_ms or 0.0), payload, exchange)
        except UpstreamError as problem:
            return _failure(item.id, problem.outcome, str(problem), exchange)
        except Exception:
            logger.exception(
                "request_id=%s: the gateway itself failed on this item", request_id, extra={"request_id": request_id}
            )
            reason = f"see the gateway's log for request id {request_id}"
            return _failure(item.id, "internal_error", reason, exchange)
        finally:
            exchange.call_ended(timings)


def _line(item_id: str, answer: Answer, elapsed_ms: int, payload: bytes, exchange: Exchange) -> bytes:
    """The line of an item that vLLM answered.

    Raises:
        UpstreamError: a status of success on something that is no answer.
    """
    if answer.status >= 400:
        exchange.item_ended(HttpFailure.outcome)
        message = error_message(payload) if payload.strip() else f"HTTP {answer.status} with an empty body"
        return _dump({"id": item_id, "status": answer.status, "elapsed_ms": elapsed_ms, "error": message})
    body = _checked_body(answer, payload)
    head = _dump({"id": item_id, "status": answer.status, "elapsed_ms": elapsed_ms})
    exchange.item_ended("ok")
    return head.removesuffix(b"}\n") + b',"body":' + body + b"}\n"


def _failure(item_id: str, outcome: str, reason: str, exchange: Exchange) -> bytes:
    exchange.item_ended(outcome)
    return _dump({"id": item_id, "status": 500, "elapsed_ms": 0, "error": f"{outcome}: {reason}"})


def _checked_body(answer: Answer, payload: bytes) -> bytes:
    if not 200 <= answer.status < 300:
        raise UpstreamError(f"vLLM answered with status {answer.status}, which is no chat answer")
    if answer.is_event_stream:
        reader = StreamReader()
        reader.feed(payload)
        reader.close()
        reason = f"; it says: {reader.error}" if reader.error else ""
        raise UpstreamError(f"vLLM sent an event stream to an item that did not ask for one{reason}")
    if not payload.strip():
        raise BrokenStream(f"vLLM answered {answer.status} with an empty body")
    strict, error = _strict_object(payload)
    if error:
        raise UpstreamError(error_message({"error": error}))
    return strict


def _strict_object(payload: bytes) -> tuple[bytes, Any]:
    """``payload`` as strict JSON on one line, and its ``error`` field.

    What is strict already passes as it is; NaN and infinities, which Python servers write, become null.

    Raises:
        UpstreamError: not a JSON object.
    """
    try:
        error = msgspec.json.decode(payload, type=_ErrorField).error
        payload.decode()  # msgspec does not look into the strings it skips
        if b"\n" not in payload and b"\r" not in payload:
            return _escape_false_line_ends(payload), error
        value = msgspec.json.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            value = finite(json.loads(payload.decode(errors="replace")))
        except (ValueError, RecursionError) as problem:
            raise UpstreamError(f"vLLM's answer is not JSON ({problem}): {_excerpt(payload)}") from problem
    if not isinstance(value, dict):
        raise UpstreamError(f"vLLM's answer is {type(value).__name__}, not a JSON object: {_excerpt(payload)}")
    return _dump(value).removesuffix(b"\n"), value.get("error")


def _excerpt(payload: bytes) -> str:
    return payload[:200].decode(errors="replace")


def _dump(record: dict[str, Any]) -> bytes:
    return _escape_false_line_ends(dump_line(record))


def _escape_false_line_ends(line: bytes) -> bytes:
    if line.isascii():
        return line
    for letter, escape in _FALSE_LINE_ENDS.items():
        line = line.replace(letter.encode(), escape)
    return line
