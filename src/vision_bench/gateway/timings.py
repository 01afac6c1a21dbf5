"""How long a call waited and ran."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vision_bench.gateway.journal import Journal


@dataclass(slots=True)
class Timings:
    """How long one call waited and ran, filled in as it happens. None: it never came that far."""

    queue_ms: float | None = None
    """For room and for a permit together."""
    upstream_ms: float | None = None
    head_ms: float | None = None
    """From the permit to the head of vLLM's answer."""
    upstream: int = 0
    """Which vLLM was called, last if there were two: its place in VLLM_BASE_URL."""
    journal: Journal | None = None
    """Where each wait and each call is written down, of a request whose spans are wanted."""
    among: Callable[[], frozenset[int]] | None = None
    """The vLLMs that this call may go to, by their places, asked anew for each try; None: any."""
    permitted_ns: int | None = None
    """When the last permit was given."""
