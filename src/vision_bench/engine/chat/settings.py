"""How an embedded engine is set up: vLLM's own flags, by vLLM's names, and the traps for measuring tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

VLLM_VERSION = "0.32.0"
"""The release whose wire is spoken; ``GET /version`` says so."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Everything ``create_engine`` needs besides the model.

    ``max_num_queued_reqs``: None is no limit; a request that would wait behind that many is answered 503.
    ``limit_mm_per_prompt``: most items of a kind in one request, ``{"video": 2}``; a kind not named has no limit.
    ``role_chunk``: vLLM sends the role chunk with the first token; ``immediate`` sends it with the headers, as other
    servers do, and a tool that takes it for a token measures nonsense. ``tokens_per_chunk``: that many tokens leave
    in one event, as with speculative decoding. ``close_after_500``: cut the connection after a 500 without saying so
    in a header, as vLLM does.
    """

    served_model_names: tuple[str, ...] = ("qwen",)
    max_model_len: int = 16384
    max_num_seqs: int = 8
    max_num_queued_reqs: int | None = None
    api_key: str | None = None
    limit_mm_per_prompt: Mapping[str, int] = field(default_factory=dict)
    trust_request_mm_kwargs: bool = True
    per_request_metrics: bool = False
    role_chunk: Literal["first-token", "immediate"] = "first-token"
    tokens_per_chunk: int = 1
    close_after_500: bool = False
    truth_size: int = 10_000

    @property
    def model_name(self) -> str:
        """The name answers carry: the first served one."""
        return self.served_model_names[0]

    def tells_metrics(self, choices: int) -> bool:
        """Whether an answer holds its request's times: they are of one choice, so of several nothing is told."""
        return self.per_request_metrics and choices == 1
