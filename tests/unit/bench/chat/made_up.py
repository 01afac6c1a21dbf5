"""Records whose every stamp is known."""

from __future__ import annotations

from typing import Any

from vision_bench.bench.chat.record import ChatRecord

MS = 1_000_000


def answered(
    index: int = 0,
    *,
    due: float = 0,
    sent: float | None = None,
    events: tuple[float, ...] = (100, 110, 120),
    tokens: int | None = None,
    **more: Any,
) -> ChatRecord:
    """A good streamed answer; times in ms from the start of the step, ``events`` too. No event: one piece at 100."""
    sent = due if sent is None else sent
    end = (events[-1] if events else 100) + 1
    stamps = {name: int(at * MS) for name, at in (("due_ns", due), ("dsp_ns", due), ("con_ns", sent), ("hdr_ns", sent))}
    stamps |= {"dec_ns": int(due * MS), "bod_ns": int(sent * MS), "stop_ns": int((end + 1) * MS)}
    stamps |= {"end_ns": int(end * MS), "par_ns": int(end * MS), "val_ns": int((end + 1) * MS)}
    values: dict[str, Any] = {
        "k_ns": [int(event * MS) for event in events],
        "k1_text_ns": int(events[0] * MS) if events else None,
        "completion_tokens": len(events) if tokens is None else tokens,
        "is_streamed": bool(events),
        "status": 200,
        "outcome": "ok",
        "finish_reason": "stop",
    }
    return ChatRecord(step=1, index=index, ordinal=index, **stamps | values | more)


def failed(index: int = 0, *, due: float = 0, stop: float = 50, outcome: str = "http_error", **more: Any) -> ChatRecord:
    """A request that came to nothing."""
    return ChatRecord(
        step=1,
        index=index,
        ordinal=index,
        due_ns=int(due * MS),
        dsp_ns=None if outcome == "unsent" else int(due * MS),
        hdr_ns=None if outcome in ("unsent", "connect_failed") else int(due * MS),
        stop_ns=int(stop * MS),
        outcome=outcome,
        **more,
    )
