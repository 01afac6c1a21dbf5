"""GatewayClient: one answer, a streamed answer, or a batch as it completes, each failure with a type.

What it never does: retry once a byte of the answer has come, retry anything but a failed connection, 502 or 503, or
take a broken answer for an empty one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import httpx

from vision_bench.client.caller import CONNECT_SECONDS, Caller, failure_of, transport_errors
from vision_bench.client.retry import RetryBudget, RetryPolicy, RetryRule
from vision_bench.errors import BrokenStream, InvalidRequest
from vision_bench.wire import ndjson, sse
from vision_bench.wire.chat import Json, Reply, error_message, read_reply
from vision_bench.wire.chat_stream import Delta, StreamReader
from vision_bench.wire.shapes import is_count, parse_json

DEFAULT_URL = "http://127.0.0.1:8001"
DEFAULT_TIMEOUT_SECONDS = 930.0
"""Between two bytes: the gateway itself may wait 300 s for a permit and 600 s for the model."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. ``elapsed_ms`` is the client's own time for the call, waiting and retries included."""

    reply: Reply
    body: Json
    elapsed_ms: float
    request_id: str | None


@dataclass(frozen=True, slots=True)
class BatchLine:
    """One item's line. ``elapsed_ms`` is the gateway's: the model's time after the permit, 0 when it failed itself."""

    id: str
    status: int
    elapsed_ms: int | None
    body: Json | None
    error: str | None


class ChatStream:
    """A streamed answer being read: iterate it for the pieces of output, then look at ``reply``.

    Attributes:
        first_output_ns: on ``clock``, when the first piece of output had been read; None before it.
        read_ns: when the bytes came that held the last output, or the receipt of a question about streams.
        parsed_ns: when they had been parsed.
    """

    def __init__(self, response: httpx.Response, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._response = response
        self._clock = clock
        self._reader = StreamReader()
        self.request_id = response.headers.get("x-request-id")
        self.first_output_ns: int | None = None
        self.read_ns: int | None = None
        self.parsed_ns: int | None = None

    @property
    def reply(self) -> Reply:
        """What has come so far; complete once the iteration has ended without an error."""
        return self._reader.reply()

    @property
    def receipt(self) -> Json | None:
        """The gateway's own object about a question about streams, once it has come."""
        return self._reader.receipt

    async def __aiter__(self) -> AsyncIterator[Delta]:
        reader = self._reader
        with transport_errors():
            async for chunk in self._response.aiter_bytes():
                for delta in self._read(chunk):
                    yield delta
                if reader.finished:  # the socket may stay open after [DONE]; that wait is nobody's
                    break
        for delta in reader.close():
            yield delta
        if reader.outcome == "error":
            raise BrokenStream(f"error inside the stream: {reader.error}")
        if reader.outcome == "truncated":
            raise BrokenStream(
                f"the stream ended after {len(reader.text)} characters without [DONE] or a finish reason"
            )

    def _read(self, chunk: bytes) -> list[Delta]:
        read_ns, known = self._clock(), self._reader.receipt
        deltas = self._reader.feed(chunk)
        if deltas or self._reader.receipt is not known:
            self.read_ns, self.parsed_ns = read_ns, self._clock()
        if deltas and self.first_output_ns is None:
            self.first_output_ns = self.parsed_ns
        return deltas


class GatewayClient:
    """Async client of the gateway (or, with ``chat_path``, of any OpenAI-shaped server).

    Use it as ``async with``. It is one connection pool and one retry budget; share it between tasks.

    Args:
        url: the gateway's root, ``http://127.0.0.1:8001``.
        timeout_seconds: longest silence between two bytes of an answer.
        chat_path: where one chat is posted; ``/v1/chat/completions`` for a server that is not the gateway.
        api_key: sent as a bearer token; never logged.
        transport: a stand-in for the network, for tests.
        draw: source of jitter; seed it for repeatable waits.
        sleep: how to wait, for tests.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        policy: RetryPolicy | None = None,
        budget: RetryBudget | None = None,
        chat_path: str = "/chat",
        batch_path: str = "/chat/batch",
        api_key: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        draw: random.Random | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._rule = RetryRule(policy or RetryPolicy())
        self._chat_path = chat_path
        self._batch_path = batch_path
        self._caller = Caller(
            url,
            timeout_seconds=timeout_seconds,
            budget=budget,
            api_key=api_key,
            transport=transport,
            draw=draw,
            sleep=sleep,
        )
        self.url = self._caller.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; calls still under way end."""
        await self._caller.close()

    async def check(self, path: str = "/healthz") -> None:
        """Raise unless a GET of ``path`` answers 200. Not retried: whoever asks wants to know now.

        Raises:
            ConnectFailed, UpstreamTimeout, HttpFailure
        """
        with transport_errors(self.url):
            response = await self._caller.http.get(path, timeout=CONNECT_SECONDS)
        if response.status_code != httpx.codes.OK:
            raise failure_of(response)

    async def chat(self, body: Json, *, request_id: str | None = None) -> Answer:
        """Post one body, wait for the whole answer.

        Raises:
            ConnectFailed: no connection, after retries.
            UpstreamTimeout: silence longer than the timeout.
            HttpFailure: an error status, with the upstream's message, after retries of 502 and 503.
            BrokenStream: a 200 that holds no answer: empty, an error object, an event stream, cut off.
        """
        if body.get("stream"):
            raise InvalidRequest("the body asks for a stream; use stream_chat")
        started = time.monotonic()
        async with self._post(self._chat_path, encode_body(body), request_id) as response:
            with transport_errors(self.url):
                data = await response.aread()
        elapsed_ms = (time.monotonic() - started) * 1000
        parsed = _read_answer(response, data)
        try:
            reply = read_reply(parsed)
        except ValueError as problem:
            raise BrokenStream(f"HTTP 200 without an answer: {problem}") from problem
        return Answer(reply, parsed, elapsed_ms, response.headers.get("x-request-id"))

    @contextlib.asynccontextmanager
    async def stream_chat(self, body: Json, *, request_id: str | None = None) -> AsyncIterator[ChatStream]:
        """Post one body with ``stream: true``; the block gets a `ChatStream`, and leaving it ends the call.

        Raises:
            As `chat`; the iteration itself raises BrokenStream for an error event or a stream that ends early.
        """
        streamed = body | {"stream": True, "stream_options": {"include_usage": True} | body.get("stream_options", {})}
        async with self._post(self._chat_path, encode_body(streamed), request_id) as response:
            if media_type(response) != sse.MEDIA_TYPE:
                data = await response.aread()
                detail = error_message(data)[:200]
                raise BrokenStream(f"asked for a stream, got {media_type(response) or 'no type'}: {detail}")
            yield ChatStream(response)

    async def batch(
        self, items: Sequence[tuple[str, Json]], *, request_id: str | None = None
    ) -> AsyncGenerator[BatchLine, None]:
        """Post many (id, body) pairs as one batch; lines are given as they complete, in no order.

        Whoever may leave the loop early wraps this in ``contextlib.aclosing``: leaving is what makes the gateway
        cancel the rest.

        Raises:
            As `chat`; BrokenStream also when the stream ends before every item has had its line, or held a line that is
            none: raised at the end, when all that can be read has been given.
        """
        content = await asyncio.to_thread(encode_body, {"items": [{"id": name, "body": body} for name, body in items]})
        splitter, seen = ndjson.LineSplitter(), 0
        unreadable: BrokenStream | None = None
        async with self._post(self._batch_path, content, request_id) as response:
            if media_type(response) != ndjson.MEDIA_TYPE:
                detail = error_message(await response.aread())[:200]
                raise BrokenStream(f"asked for a batch, got {media_type(response) or 'no type'}: {detail}")
            with transport_errors(self.url):
                async for raw in _lines(response, splitter):
                    try:
                        line = _read_line(raw)
                    except BrokenStream as problem:
                        unreadable = problem
                        continue
                    yield line
                    seen += 1
        if unreadable is not None:
            raise unreadable
        if seen < len(items):
            raise BrokenStream(f"the batch ended after {seen} of {len(items)} lines")

    def _post(
        self, path: str, content: bytes, request_id: str | None
    ) -> contextlib.AbstractAsyncContextManager[httpx.Response]:
        """The first response that is not to be retried, its body not yet read; an error status is raised."""
        headers = {"Content-Type": "application/json", "X-Request-Id": request_id or uuid.uuid4().hex}
        return self._caller.open("POST", path, rule=self._rule, content=content, headers=headers)


async def _lines(response: httpx.Response, splitter: ndjson.LineSplitter) -> AsyncIterator[bytes]:
    async for chunk in response.aiter_bytes():
        for line in splitter.feed(chunk):
            yield line
    for line in splitter.close():
        yield line


def _read_answer(response: httpx.Response, data: bytes) -> Json:
    if media_type(response) == sse.MEDIA_TYPE:
        raise BrokenStream("asked for one JSON answer, got an event stream")
    try:
        parsed = parse_json(data)
    except ValueError as problem:
        what = f"HTTP 200 that is not JSON: {data[:100].decode(errors='replace')}" if data.strip() else "empty HTTP 200"
        raise BrokenStream(what) from problem
    if not isinstance(parsed, dict):
        raise BrokenStream(f"HTTP 200 that holds {type(parsed).__name__}, not an object")
    return parsed


def _read_line(line: bytes) -> BatchLine:
    try:
        record = parse_json(line)
        name, status, elapsed_ms, error = (record.get(key) for key in ("id", "status", "elapsed_ms", "error"))
        if not (isinstance(name, str) and isinstance(status, int) and is_count(elapsed_ms)):
            raise ValueError("its id, status or elapsed_ms is not of its kind")
    except (ValueError, AttributeError) as problem:
        raise BrokenStream(
            f"a batch line cannot be read ({problem}): {line[:100].decode(errors='replace')}"
        ) from problem
    return BatchLine(name, status, elapsed_ms, record.get("body"), None if error is None else error_message(error))


def encode_body(body: Json) -> bytes:
    """A body as it goes on the wire: strict UTF-8 JSON.

    Raises:
        InvalidRequest: something in it is not JSON, such as NaN.
    """
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidRequest(f"the body cannot be written as JSON: {problem}") from problem


def media_type(response: httpx.Response) -> str:
    """What the answer says it is, without parameters; empty where it does not."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
