"""Errors that servers are known to give, each with its cause and the way out."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trap:
    """A known error: its name, how to know it by the server's words, and what to do."""

    name: str
    pattern: re.Pattern[str]
    remedy: str


TRAPS = (
    Trap(
        "audio_cache",
        re.compile(r"doesn't have audio track with `?audio_in_video", re.IGNORECASE),
        "vLLM has this clip's sound in its processor cache under another picture (the same clip at another fps, or two "
        "silent tracks of one length); start it with --mm-processor-cache-gb 0",
    ),
    Trap(
        "kwargs_disabled",
        re.compile(r"per-request \w+ are disabled", re.IGNORECASE),
        "start vLLM with --trust-request-mm-kwargs; without it no request may choose fps or ask for the sound",
    ),
    Trap(
        "no_audio_stream",
        re.compile(r"no audio stream found", re.IGNORECASE),
        "the server finds no sound track in the clip; send it with --no-audio",
    ),
    Trap(
        "unknown_model",
        re.compile(r"the model `?.*`? does not exist", re.IGNORECASE),
        "give --model one of the names that GET /v1/models lists (vLLM: --served-model-name)",
    ),
    Trap(
        "too_long",
        re.compile(r"maximum context length|exceeds model's maximum", re.IGNORECASE),
        "lower --fps, or start the server with a larger --max-model-len",
    ),
    Trap(
        "unknown_key",
        re.compile(
            r"(unrecognized|unknown|unsupported|extra)\b.*\b(media_io_kwargs|mm_processor_kwargs|chat_template_kwargs)",
            re.IGNORECASE | re.DOTALL,
        ),
        "the server is not vLLM; give --dialect sglang or --dialect openai",
    ),
    Trap(
        "unauthorized", re.compile(r"^unauthorized$", re.IGNORECASE), "the server wants a key; give it with --api-key"
    ),
    Trap(
        "no_batch_route",
        re.compile(r"^not found$", re.IGNORECASE),
        "the address is no gateway; to go to a model server directly, end --gateway with /v1",
    ),
)


def find_trap(message: str) -> Trap | None:
    """The known trap whose words stand in ``message``."""
    return next((trap for trap in TRAPS if trap.pattern.search(message)), None)


def with_remedy(message: str) -> str:
    """``message``, with the way out behind it where one is known."""
    trap = find_trap(message)
    return message if trap is None else f"{message} [remedy: {trap.remedy}]"
