"""Many bodies in one request: taken apart, sent all at once, given back a line each as they finish."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from vision_bench.errors import BrokenStream, UpstreamError
from vision_bench.gateway.admission import Timings
from vision_bench.gateway.exchange import Exchange, Refusal
from vision_bench.gateway.upstream import Answer, VLLMClient
from vision_bench.wire.chat import StreamReader, error_message
from vision_bench.wire.ndjson import dump_line, finite

logger = logging.getLogger(__name__)

# Allowed in JSON, but line ends to str.splitlines and to clients built on it.
_FALSE_LINE_ENDS = {"\u0085": rb"\u0085", "\u2028": rb"\u2028", "\u2029": rb"\u2029"}


class BatchItem(msgspec.Struct, frozen=True):
    """One body of a batch, as the caller wrote it: ``body`` is a view into the request, not a copy."""

    id: str
    body: msgspec.Raw


class _Batch(msgspec.Struct):
    items: list[BatchItem]


class _StreamFlag(msgspec.Struct):
    stream: Any = None


class _ErrorField(msgspec.Struct):
    error: Any = None


def parse_items(body: bytes | bytearray, *, max_items: int) -> list[BatchItem]:
    """The items of a batch request.

    Raises:
        Refusal: 413 for more than ``max_items``; 400 for anything else, naming the item and the field. Ids must
            differ: results are matched by id, and two lines with one id could not be told apart.
    """
    try:
        items = msgspec.json.decode(body, type=_Batch).items
    except msgspec.ValidationError as problem:
        raise _malformed(*_place(str(problem))) from problem
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise _malformed(None, f"not JSON ({problem})") from problem
    if len(items) > max_items:
        raise Refusal(
            413,
            f"{len(items)} items, the limit is {max_items} (MAX_BATCH_ITEMS); send them in several requests",
            type="too_many_items",
            param="items",
        )
    may_stream = b'"stream"' in body  # saves a second pass over the bodies; base64 cannot hold a quote
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        if memoryview(item.body)[0] != ord("{"):
            raise _malformed(f"items[{index}].body", "must be a chat.completions object")
        if (first := seen.setdefault(item.id, index)) != index:
            raise _malformed(
                f"items[{index}].id", f"{item.id!r} is the id of items[{first}] already; give every item its own"
            )
        if may_stream and msgspec.json.decode(item.body, type=_StreamFlag).stream is True:
            raise _malformed(
                f"items[{index}].body.stream", "a batch line holds a whole answer; leave stream out, or use /chat"
            )
    return items


def _place(message: str) -> tuple[str | None, str]:
    """msgspec's "what - at `$.items[2].id`" as the place and the fault."""
    found = re.fullmatch(r"(.*) - at `\$\.?(.*)`", message)
    what, where = (found[1], found[2]) if found else (message, "")
    if missing := re.fullmatch(r"Object missing required field `(.*)`", what):
        return f"{where}.{missing[1]}".lstrip("."), "is missing"
    return where or None, f"{what[0].lower()}{what[1:]}"


def _malformed(param: str | None, fault: str) -> Refusal:
    return Refusal(400, f"{param or 'the body'}: {fault}", type="invalid_request", param=param)


async def run_batch(
    items: Sequence[BatchItem],
    client: VLLMClient,
    exchange: Exchange,
    emit: Callable[[bytes], Awaitable[None]],
    *,
    authorization: str | None = None,
) -> None:
    """Call vLLM for every item, and ``emit`` a line for each in the order in which they finish.

    Every item asks for a permit at once, in the order of the request. A failed item is a line; the others go on.
    Cancelled, it cancels every call and returns when their permits are free.
    """
    tasks = [
        asyncio.create_task(_answer_item(item, f"{exchange.request_id}-{index}", client, exchange, authorization))
        for index, item in enumerate(items)
    ]
    try:
        for next_done in asyncio.as_completed(tasks):
            await emit(await next_done)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _answer_item(
    item: BatchItem, request_id: str, client: VLLMClient, exchange: Exchange, authorization: str | None
) -> bytes:
    timings = Timings()
    try:
        async with client.chat(
            memoryview(item.body), request_id=request_id, timings=timings, authorization=authorization
        ) as answer:
            payload = await answer.read()
        return _line(item.id, answer, round(timings.upstream_ms or 0.0), payload, exchange)
    except UpstreamError as problem:
        return _failure(item.id, f"{problem.outcome}: {problem}", exchange)
    except Exception:
        logger.exception("request_id=%s: the gateway itself failed on this item", request_id)
        return _failure(item.id, f"internal_error: see the gateway's log for request id {request_id}", exchange)
    finally:
        exchange.include(timings)


def _line(item_id: str, answer: Answer, elapsed_ms: int, payload: bytes, exchange: Exchange) -> bytes:
    """The line of an item that vLLM answered.

    Raises:
        UpstreamError: a status of success on something that is no answer.
    """
    if answer.status >= 400:
        exchange.failed = (exchange.failed or 0) + 1
        message = error_message(payload) if payload.strip() else f"HTTP {answer.status} with an empty body"
        return _dump({"id": item_id, "status": answer.status, "elapsed_ms": elapsed_ms, "error": message})
    body = _checked_body(answer, payload)
    head = _dump({"id": item_id, "status": answer.status, "elapsed_ms": elapsed_ms})
    return head.removesuffix(b"}\n") + b',"body":' + body + b"}\n"


def _failure(item_id: str, message: str, exchange: Exchange) -> bytes:
    exchange.failed = (exchange.failed or 0) + 1
    return _dump({"id": item_id, "status": 500, "elapsed_ms": 0, "error": message})


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
