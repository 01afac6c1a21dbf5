"""Rows of a study whose every number is known."""

from __future__ import annotations

from typing import Any


def row(share: float, *, tokens: float | None = 100.0, sent: float = 1000.0, model: str = "qwen", **more: Any) -> Any:
    """A complete envelope; keys of the envelope and others among ``more``."""
    keys = ("height", "fps", "use_audio", "seconds")
    envelope = {key: more.pop(key) for key in keys if key in more}
    words = ", ".join(f"{key} {value}" for key, value in envelope.items())
    accuracy = {
        "share": share, "interval": [max(0.0, share - 0.1), min(1.0, share + 0.05)], "count": 40, "clips": 10,
        "by_fact": {"measured.cuts": {"right": round(share * 40), "count": 40, "share": share}},
    }  # fmt: skip
    latency = {"count": 10, "p50": 200.0, "p95": None, "max": 300.0}
    return {
        "folder": words, "model": model, "envelope": envelope, "words": words, "is_complete": True,
        "bodies": [f"{model}{words}"], "accuracy": accuracy, "prompt_tokens": tokens, "request_bytes": sent,
        "requests": {"due": 10, "ok": 10, "failed": 0}, "e2e_ms": latency, "full_response_ms": latency, **more,
    }  # fmt: skip
