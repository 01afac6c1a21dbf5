"""Answers as vLLM 0.32 writes them: every key, in its order, whole and streamed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vision_bench.engine.chat.model import Prepared
from vision_bench.engine.chat.truth import Timeline

FINGERPRINT = "vllm-0.32.0-embedded"
GRAMMAR_STOP_TOKEN = 151645
"""Qwen3's <|im_end|>: what ``stop_reason`` holds when a grammar ended the answer (a number, not a string)."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """One finished sample."""

    index: int
    text: str
    finish_reason: str
    stop_reason: str | int | None
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class ReplyHead:
    """What all chunks of one answer share. ``created`` is wall time in seconds."""

    response_id: str
    created: int
    model: str

    def completion(self, choices: Sequence[Choice], prepared: Prepared, metrics: Json | None) -> Json:
        """A whole answer."""
        return {
            "id": self.response_id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [_choice(choice) for choice in choices],
            "service_tier": None,
            "system_fingerprint": FINGERPRINT,
            "usage": _whole_usage(prepared, sum(choice.completion_tokens for choice in choices)),
            "prompt_logprobs": None,
            "prompt_token_ids": None,
            "prompt_text": None,
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "metrics": metrics,
        }

    def role_chunk(self, index: int, usage: Json | None) -> Json:
        """The first chunk of a choice: a role and no text. Not a token."""
        choice = {
            "index": index,
            "delta": {"role": "assistant", "content": ""},
            "logprobs": None,
            "finish_reason": None,
        }
        chunk = self._chunk([choice])
        if usage is not None:
            chunk["usage"] = usage
        return chunk | {"prompt_token_ids": None, "prompt_text": None}

    def text_chunk(self, index: int, text: str, usage: Json | None) -> Json:
        """A piece of text that is not the last."""
        choice = {
            "index": index,
            "delta": {"content": text},
            "logprobs": None,
            "finish_reason": None,
            "token_ids": None,
        }
        chunk = self._chunk([choice])
        if usage is not None:
            chunk["usage"] = usage
        return chunk

    def last_chunk(
        self,
        index: int,
        text: str,
        finish_reason: str,
        stop_reason: str | int | None,
        usage: Json | None,
        *,
        signed: bool,
    ) -> Json:
        """The last piece of text; the finish reason rides on it. ``signed``: no usage chunk follows."""
        choice = {
            "index": index,
            "delta": {"content": text},
            "logprobs": None,
            "finish_reason": finish_reason,
            "stop_reason": stop_reason,
            "token_ids": None,
        }
        chunk = self._chunk([choice])
        if usage is not None:
            chunk["usage"] = usage
        return chunk | ({"system_fingerprint": FINGERPRINT} if signed else {})

    def usage_chunk(self, prepared: Prepared, completion_tokens: int, metrics: Json | None) -> Json:
        """The chunk without a choice that ``include_usage`` adds before ``[DONE]``."""
        details: Json = {"cached_tokens": 0, "created_cache_tokens": 0}
        if prepared.multimodal_tokens:
            details["multimodal_tokens"] = dict(prepared.multimodal_tokens)
        usage = _counts(prepared, completion_tokens) | {"prompt_tokens_details": details}
        chunk = self._chunk([]) | {"usage": usage, "system_fingerprint": FINGERPRINT}
        return chunk | ({"metrics": metrics} if metrics is not None else {})

    def _chunk(self, choices: list[Json]) -> Json:
        return {
            "id": self.response_id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }


def running_usage(prepared: Prepared, completion_tokens: int) -> Json:
    """The usage on every chunk that ``continuous_usage_stats`` asks for."""
    return _counts(prepared, completion_tokens) | {"completion_tokens_details": None}


def _counts(prepared: Prepared, completion_tokens: int) -> Json:
    return {
        "prompt_tokens": prepared.prompt_tokens,
        "total_tokens": prepared.prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


def _whole_usage(prepared: Prepared, completion_tokens: int) -> Json:
    return _counts(prepared, completion_tokens) | {
        "prompt_tokens_details": {
            "cached_tokens": 0,
            "created_cache_tokens": 0,
            "multimodal_tokens": dict(prepared.multimodal_tokens) or None,
        },
        "completion_tokens_details": None,
    }


def _choice(choice: Choice) -> Json:
    message = {
        "role": "assistant",
        "content": choice.text,
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        "reasoning": None,
    }
    return {
        "index": choice.index,
        "message": message,
        "logprobs": None,
        "finish_reason": choice.finish_reason,
        "stop_reason": choice.stop_reason,
        "token_ids": None,
        "routed_experts": None,
    }


def model_list(names: Sequence[str], *, created: int, max_model_len: int) -> Json:
    """``GET /v1/models``. ``root`` is the name again: there is no checkpoint on a disk to tell about."""
    return {
        "object": "list",
        "data": [_model_card(name, created, max_model_len) for name in names],
    }


def _model_card(name: str, created: int, max_model_len: int) -> Json:
    permission = {
        "id": f"modelperm-{name}",
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": name,
        "parent": None,
        "max_model_len": max_model_len,
        "permission": [permission],
    }


def request_metrics(timeline: Timeline) -> Json:
    """The ``metrics`` of ``--enable-per-request-metrics``. Its TTFT begins with the scheduling, as vLLM's does."""
    inference_ms = timeline.inference_ms
    return {
        "time_to_first_token_ms": timeline.prefill_ms,
        "generation_time_ms": timeline.decode_ms,
        "queue_time_ms": timeline.queue_ms,
        "mean_itl_ms": timeline.tpot_ms,
        "tokens_per_second": timeline.tokens / inference_ms * 1e3 if inference_ms else None,
        "speculative_decoding": None,
    }
