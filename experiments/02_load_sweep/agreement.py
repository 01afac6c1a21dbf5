"""The server's counts of a step beside the client's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

TIMES = {
    "vllm:time_to_first_token_seconds": "ttft_ms",
    "vllm:e2e_request_latency_seconds": "e2e_ms",
}
"""The server's histogram, the client's column. vLLM's begin when the media are loaded; the client's with the first byte
sent: what lies between is upload, media loading and the way back."""


def agreement(step: Mapping[str, Any]) -> Json:
    """Counts that must be equal, and mean times of which the client's can only be longer."""
    told, counted = step["server"]["histograms"], step["server"]["counters"]
    ok = step["requests"]["ok"]
    tokens = step["completion_tokens"]
    prompts = step["prompt_tokens"]
    pairs: Json = {
        "requests": _pair(ok, told.get("vllm:e2e_request_latency_seconds", {}).get("count")),
        "completion_tokens": _pair(_total(tokens), counted.get("vllm:generation_tokens_total")),
        "prompt_tokens": _pair(_total(prompts), counted.get("vllm:prompt_tokens_total")),
    }
    for metric, column in TIMES.items():
        mean = told.get(metric, {}).get("mean_ms")
        pairs[f"mean_{column}"] = _pair(step[column]["mean"], mean)
    return pairs


def _total(column: Mapping[str, Any]) -> float | None:
    return None if column["mean"] is None else round(column["mean"] * column["count"])


def _pair(client: float | None, server: float | None) -> Json:
    difference = None if client is None or server is None else round(client - server, 3)
    return {"client": client, "server": server, "client_less_server": difference}
