"""From the pieces of an answer to the stamps and words of its record. No I/O: fed by a connection, or by a test."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from vision_bench.bench.chat.record import BatchLine, ChatRecord
from vision_bench.bench.record import OK
from vision_bench.errors import BrokenStream, HttpFailure
from vision_bench.wire import ndjson, sse
from vision_bench.wire.chat import Reply, error_message, read_reply
from vision_bench.wire.chat_stream import StreamReader
from vision_bench.wire.shapes import is_count, parse_json

ERROR = "error"
"""Outcome: an answer with status 200 that holds an error, or is no chat answer."""
TRUNCATED = BrokenStream.outcome
HTTP_ERROR = HttpFailure.outcome
ITEM_FAILED = "item_failed"
"""Outcome of a batch some of whose items have no answer."""

MAX_DETAIL = 300
_RECEIPT = (
    *("frames", "newest", "stamps", "offsets", "reported_ms"),
    *("payload_bytes", "resized", "visual_tokens", "cache"),
)
"""Of a receipt: what its stages are computed from."""
_TIMING = re.compile(r"\s*([\w-]+)\s*;(?:[^,]*;)?\s*dur=(\d+(?:\.\d+)?)")


class AnswerReader:
    """Fills one record from one answer, whatever its form: events, one JSON object, or a batch's lines.

    Args:
        batch_size: items sent; None for a single chat.
        now: the clock, for the stamps behind the last byte.
        is_valid: holds an answer's text against the workload's schema; None without one.
        parse: as ``StreamReader``'s.
    """

    def __init__(
        self,
        record: ChatRecord,
        *,
        now: Callable[[], int],
        batch_size: int | None = None,
        is_valid: Callable[[str], bool] | None = None,
        parse: Callable[[str], Any] = parse_json,
    ) -> None:
        self._record = record
        self._parse = parse
        self._now = now
        self._batch_size = batch_size
        self._is_valid = is_valid
        self._stream: StreamReader | None = None
        self._splitter: ndjson.LineSplitter | None = None
        self._lines: list[BatchLine] = []
        self._pieces: list[bytes] = []

    @property
    def is_finished(self) -> bool:
        """``[DONE]`` or an error event: nothing that may still come changes the answer."""
        return self._stream is not None and self._stream.finished

    def head(self, status: int, headers: dict[str, str], now_ns: int) -> None:
        """Status and headers (names in lower case)."""
        record = self._record
        record.rsp_ns, record.status = now_ns, status
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        for name, value in _TIMING.findall(headers.get("server-timing", "")):
            record.server_ms[f"{name}_ms"] = float(value)
        if 200 <= status < 300:
            record.is_streamed = media_type == sse.MEDIA_TYPE
            if record.is_streamed:
                self._stream = StreamReader(parse=self._parse)
            elif media_type == ndjson.MEDIA_TYPE and self._batch_size is not None:
                self._splitter = ndjson.LineSplitter()
                record.lines = self._lines

    def body(self, data: bytes, now_ns: int) -> None:
        """A piece of the body, as the network cut it."""
        if self._stream is not None:
            self._read_events(self._stream, data, now_ns)
        elif self._splitter is not None:
            self._read_lines(self._splitter.feed(data), now_ns)
        else:
            self._pieces.append(data)

    def close(self, *, is_whole: bool, end_ns: int, problem: str | None) -> None:
        """The answer is over: settle outcome, text and counts.

        Args:
            is_whole: HTTP's own framing says that nothing is missing.
            end_ns: when its last byte came.
            problem: what ended it otherwise.
        """
        record = self._record
        record.end_ns = end_ns
        if record.status is None:
            record.end(TRUNCATED, f"the connection closed before an answer came ({problem})")
        elif not 200 <= record.status < 300:
            record.end(HTTP_ERROR, f"HTTP {record.status}: {error_message(b''.join(self._pieces))}"[:MAX_DETAIL])
        elif self._stream is not None:
            self._close_stream(self._stream, problem)
        elif self._batch_size is not None:
            self._close_batch(self._batch_size, end_ns, problem)
        else:
            self._close_whole(is_whole, problem)

    # --- events

    def _read_events(self, stream: StreamReader, data: bytes, now_ns: int) -> None:
        record = self._record
        for event in stream.feed_events(data):
            if record.first_event_ns is None:
                record.first_event_ns = now_ns
            if not event.deltas:
                continue
            record.k_ns.append(now_ns)
            for delta in event.deltas:
                if delta.kind == "reasoning":
                    record.k1_reasoning_ns = record.k1_reasoning_ns or now_ns
                elif delta.kind == "text":
                    record.k1_text_ns = record.k1_text_ns or now_ns
            tokens = (event.usage or {}).get("completion_tokens")
            if tokens is not None:
                record.k_tokens = record.k_tokens or []
                record.k_tokens.append(tokens)

    def _close_stream(self, stream: StreamReader, problem: str | None) -> None:
        record = self._record
        if stream.close() and record.end_ns is not None:
            record.k_ns.append(record.end_ns)
        if record.k_tokens is not None and len(record.k_tokens) != len(record.k_ns):
            record.k_tokens = None  # told with some events only: no gap can be divided by it
        self._take(stream.reply())
        self._take_receipt(stream.receipt)
        if stream.outcome == OK:
            self._accept(record.text or "")
        else:
            record.par_ns = None
            missing = f"the stream ended before its end ({problem or 'closed'}), after {len(record.k_ns)} events"
            record.end(stream.outcome, (stream.error or missing)[:MAX_DETAIL])

    # --- one JSON object

    def _close_whole(self, is_whole: bool, problem: str | None) -> None:
        record, data = self._record, b"".join(self._pieces)
        if not is_whole or not data.strip():
            record.end(TRUNCATED, f"HTTP {record.status} with {len(data)} bytes ({problem or 'an empty body'})")
            return
        try:
            answer = parse_json(data)
            reply = read_reply(answer)
        except ValueError as fault:
            record.end(ERROR, str(fault)[:MAX_DETAIL])
            return
        self._take(reply)
        if isinstance(metrics := answer.get("metrics"), dict):
            record.server_ms |= _numbers(metrics)
        self._take_receipt(answer.get("vision_bench"))
        self._accept(record.text or "")

    # --- a batch's lines

    def _read_lines(self, lines: list[bytes], now_ns: int) -> None:
        for raw in lines:
            line = BatchLine(id="", line_ns=now_ns)
            try:
                read = parse_json(raw)
                line.id, line.status = str(read["id"]), read["status"] if is_count(read["status"]) else None
                line.elapsed_ms = read.get("elapsed_ms") if is_count(read.get("elapsed_ms")) else None
                if read.get("error") is not None:
                    line.error = error_message(read["error"])[:MAX_DETAIL]
                else:
                    reply = read_reply(read.get("body"))
                    usage, line.text = reply.usage or {}, reply.text or ""
                    line.completion_tokens = usage.get("completion_tokens")
                    line.prompt_tokens = usage.get("prompt_tokens")
            except (ValueError, KeyError, TypeError, AttributeError) as fault:
                line.error = f"no line of a batch ({fault})"[:MAX_DETAIL]
            self._lines.append(line)

    def _close_batch(self, size: int, end_ns: int, problem: str | None) -> None:
        record = self._record
        if self._splitter is None:
            got = error_message(b"".join(self._pieces))
            record.end(ERROR, f"asked for a batch, got another answer: {got}"[:MAX_DETAIL])
            return
        self._read_lines(self._splitter.close(), end_ns)
        lines = self._lines
        good = [line for line in lines if line.error is None]
        if good:
            record.completion_tokens = sum(line.completion_tokens or 0 for line in good)
            record.prompt_tokens = sum(line.prompt_tokens or 0 for line in good)
        if len(lines) < size:
            record.end(TRUNCATED, f"{len(lines)} of {size} lines came ({problem or 'the answer ended'})")
        elif len(good) < size:
            first = next(line.error for line in lines if line.error is not None)
            record.end(ITEM_FAILED, f"{size - len(good)} of {size} items failed: {first}"[:MAX_DETAIL])
        else:
            record.par_ns = record.val_ns = self._now()
            record.end(OK)

    # --- what all share

    def _take(self, reply: Reply) -> None:
        record = self._record
        record.text, record.finish_reason, record.model = reply.text, reply.finish_reason, reply.model
        record.take_usage(reply.usage)
        record.par_ns = self._now()

    def _take_receipt(self, told: object) -> None:
        """Stages that one clock measured join the server's times, under names of their own: a receipt's ``queue`` is
        another stretch than Server-Timing's. The readings themselves are kept in the record."""
        if not isinstance(told, dict):
            return
        record = self._record
        record.receipt = {name: told[name] for name in _RECEIPT if name in told}
        stages = told.get("stages")
        for stage in stages if isinstance(stages, list) else []:
            if isinstance(stage, dict) and isinstance(stage.get("ms"), int | float):
                record.server_ms[f"receipt_{stage.get('stage')}_ms"] = float(stage["ms"])
        frames = told.get("frames")
        if isinstance(frames, list) and frames and isinstance(frames[-1], dict):
            record.server_ms |= _numbers({"frame_age_ms": frames[-1].get("age_ms"), "frames": len(frames)})

    def _accept(self, text: str) -> None:
        record = self._record
        if self._is_valid is not None:
            record.is_valid = self._is_valid(text)
        record.val_ns = self._now()
        record.end(OK)


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    return {
        name: float(value) for name, value in values.items() if isinstance(value, int | float) and value is not True
    }
