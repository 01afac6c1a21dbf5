"""The captured exchanges that the embedded engine is held to, sent to real vLLM: captures grow old, this says when."""

from __future__ import annotations

import httpx
from tests.integration.vllm_contract import CAPTURES, Capture, compare, load, send
from tests.vllm.server import VllmServer

KNOWN_DIFFERENCES: dict[str, str] = {
    "08b_models": "max_model_len and root are this server's own",
    "08d_load": "--enable-server-load-tracking is off here",
    "05d_bad_schema": "the words hold the time of day; test_errors reads the rest",
    "default_flags/05d_bad_schema": "captured with the automatic grammar backend, this server has xgrammar",
    "07d3_video_too_long": "the words hold a count of tokens, and this tokenizer knows other words",
    "08k_tokenize": "the same",
    "07d_too_long": "the prompt that was captured is shortened in the file",
    "07j3_404_url": "the captured address was the captured server's own; test_errors asks this one's",
    "04c_fps2_audio": "400 only where the cache holds the sound from before; test_media shows it",
    "06h_logprobs": "the first log probabilities compile a kernel for 18 s, with a compiler that may be missing",
    "06f_stream_stop.meta": "the stop string is made of the captured model's words",
    "06g_stop": "the same",
}
"""Captures that this server cannot answer alike, and why."""


def names(*prefixes: str) -> list[str]:
    """Captures whose name starts with one of ``prefixes``; differences that are known are left out."""
    found = [str(path.relative_to(CAPTURES).with_suffix("")) for path in sorted(CAPTURES.rglob("*.json"))]
    return [name for name in found if name.startswith(prefixes) and name not in KNOWN_DIFFERENCES]


async def found_differences(name: str, server: VllmServer, *, headers: dict[str, str] | None = None) -> list[str]:
    """What real vLLM answers otherwise than it did when it was captured; ``headers`` go with every request."""
    capture = load(name)
    # No pool: vLLM closes connections after a 500 without saying so.
    limits = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(
        base_url=server.root, headers=headers, limits=limits, timeout=120, trust_env=False
    ) as client:
        response = await send(client, capture, model=server.model)
    return [line for line in compare(capture, response, model=server.model) if not _is_of_the_flags(capture, line)]


def _is_of_the_flags(capture: Capture, line: str) -> bool:
    """default_flags/ and 40 were captured without the flags that add these two."""
    bare = capture.name.startswith(("default_flags/", "40"))
    return bare and ("prompt_tokens_details" in line or "x-request-id" in line)
