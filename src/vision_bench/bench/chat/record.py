"""What the client saw of one chat request. The stamps are those of docs/metrics.md, monotonic ns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vision_bench.bench.record import Record


@dataclass(slots=True, kw_only=True)
class BatchLine:
    """One line of a ``/chat/batch`` answer. ``line_ns`` is when its last byte came."""

    id: str
    line_ns: int
    status: int | None = None
    elapsed_ms: int | None = None
    error: str | None = None
    completion_tokens: int | None = None
    prompt_tokens: int | None = None
    text: str | None = None


@dataclass(slots=True, kw_only=True)
class ChatRecord(Record):
    """A request and its answer. What did not happen, or was not told, is None.

    Attributes:
        item: the clip or text that was sent; body_sha256: of the body's parts, equal for equal bodies.
        is_repeat: the same body had been sent before in this run.
        is_warm: its thread had had an answer before; None without threads.
        dec_ns: when the application wanted an answer; sel_ns, enc_ns, ser_ns: media read, media encoded, body written,
            where a workload does that inside the clock; con_ns: a connection was there; is_new_connection: for this
            request; hdr_ns, bod_ns: first and last byte written; rsp_ns: the answer's headers came;
            first_event_ns: the first event of any kind, the role's included.
        k_ns: the content events: those with output in them; k_tokens: completion tokens so far at each of them, where
            the server tells usage with every chunk.
        k1_reasoning_ns, k1_text_ns: the first content event of that kind.
        end_ns: the last byte that mattered came; par_ns, val_ns: the answer was parsed, and checked.
        server_ms: times that the server tells of this request, by its own names.
        receipt: what a gateway tells of a question about a live stream; its stages are among ``server_ms``.
        is_valid: the answer keeps to the workload's schema; None where there is none.
    """

    request_id: str | None = None
    item: str | None = None
    body_sha256: str | None = None
    is_repeat: bool = False
    is_warm: bool | None = None
    is_streamed: bool | None = None
    is_new_connection: bool | None = None
    request_bytes: int | None = None
    response_bytes: int = 0
    status: int | None = None
    dec_ns: int | None = None
    sel_ns: int | None = None
    enc_ns: int | None = None
    ser_ns: int | None = None
    con_ns: int | None = None
    hdr_ns: int | None = None
    bod_ns: int | None = None
    rsp_ns: int | None = None
    first_event_ns: int | None = None
    k_ns: list[int] = field(default_factory=list)
    k_tokens: list[int] | None = None
    k1_reasoning_ns: int | None = None
    k1_text_ns: int | None = None
    end_ns: int | None = None
    par_ns: int | None = None
    val_ns: int | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    media_tokens: dict[str, int] | None = None
    model: str | None = None
    text: str | None = None
    is_valid: bool | None = None
    server_ms: dict[str, float] = field(default_factory=dict)
    lines: list[BatchLine] | None = None
    receipt: dict[str, Any] | None = None

    def take_usage(self, usage: dict[str, Any] | None) -> None:
        """Token counts as the server told them; a count that is none is left out."""
        usage = usage or {}
        self.prompt_tokens = _count(usage.get("prompt_tokens"))
        self.completion_tokens = _count(usage.get("completion_tokens"))
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict):
            self.cached_tokens = _count(details.get("cached_tokens"))
            media = details.get("multimodal_tokens")
            if isinstance(media, dict):
                self.media_tokens = {str(kind): count for kind, count in media.items() if _count(count) is not None}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
