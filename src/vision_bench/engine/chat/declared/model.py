"""A model that keeps the latencies that it declares, so that measuring tools can be measured."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from vision_bench.engine.chat.declared.settings import DeclaredSettings, Failure, Variant, read_failure, read_variant
from vision_bench.engine.chat.declared.text import answer_tokens
from vision_bench.engine.chat.errors import BrokenAnswer
from vision_bench.engine.chat.model import BadChatRequest, ChatRequest, Prepared, Token
from vision_bench.engine.chat.opening import PromptCount, count_prompt
from vision_bench.engine.clock import sleep_until

ERROR_TYPES = {
    404: "NotFoundError",
    422: "UnprocessableEntityError",
    429: "Too Many Requests",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What one request was declared to take, jitter drawn. ``decode_ms`` is the mean; each token draws its own."""

    ordinal: int
    tokens: tuple[str, ...]
    failure: Failure | None
    decode_ms: float
    preprocess_ms: float
    encoder_ms: float
    prefill_ms: float


class DeclaredModel:
    """Times are absolute: preprocessing ends at arrival + preprocess, the first token comes at slot + encoder +
    prefill, token ``i`` at first + ``i`` decode steps; a late wake-up is not passed on to the next token.

    Opening and counting the media for real happens inside the declared preprocessing; where it takes longer than
    declared, ``GET /truth`` says so.
    """

    name = "declared"

    def __init__(self, settings: DeclaredSettings) -> None:
        self._settings = settings
        self._ordinals = itertools.count()
        self._made_ns = time.monotonic_ns()

    def knows(self, model: str) -> bool:
        """Whether a model name is a served one or one of its variants."""
        return read_variant(model, self._settings.served_model_names) is not None

    async def prepare(self, request: ChatRequest) -> Prepared:
        """Open and count the media, and hold the request until its declared preprocessing is over."""
        count = await asyncio.to_thread(count_prompt, request) if request.media else count_prompt(request)
        plan = self._plan(request, count)
        await sleep_until(self._after_hiccup(request.arrived_ns + int(plan.preprocess_ms * 1e6)))
        if plan.failure is not None and plan.failure.status is not None:
            status = plan.failure.status
            kind = ERROR_TYPES.get(status, "InternalServerError" if status >= 500 else "BadRequestError")
            raise BadChatRequest(f"Injected failure {status}.", status=status, type=kind)
        declared = {
            "declared_preprocess": plan.preprocess_ms,
            "declared_encoder": plan.encoder_ms,
            "declared_prefill": plan.prefill_ms,
        }
        return Prepared(count.prompt_tokens, count.by_kind, plan, declared)

    async def generate(self, request: ChatRequest, prepared: Prepared, *, sample: int = 0) -> AsyncIterator[Token]:
        """The plan's tokens, each at its time."""
        plan: Plan = prepared.state
        start_ns = time.monotonic_ns()
        # The server stops at max_tokens, so this may be the last one before is_last is true.
        last = min(len(plan.tokens), request.max_tokens) - 1
        breaks_at = len(plan.tokens) // 2 if plan.failure is not None else None
        encoded_ns = await sleep_until(start_ns + int(plan.encoder_ms * 1e6), is_precise=False)
        due_ns = start_ns + (plan.encoder_ms + plan.prefill_ms) * 1e6
        for index, (text, gap_ms) in enumerate(zip(plan.tokens, self._gaps(plan, sample), strict=True)):
            due_ns += gap_ms * 1e6
            if index == breaks_at and plan.failure is not None:
                await _fail(plan.failure)
            # Nobody sees the middle of an answer that is sent whole: its tokens may come a millisecond late.
            is_precise = request.stream or index in (0, last)
            now_ns = await sleep_until(self._after_hiccup(int(due_ns)), is_precise=is_precise)
            if index == 0:
                stages = {"encoder": (encoded_ns - start_ns) / 1e6, "prefill": (now_ns - encoded_ns) / 1e6}
                prepared.stages_ms.update(stages)
            yield Token(text, is_last=index == len(plan.tokens) - 1)

    def _plan(self, request: ChatRequest, count: PromptCount) -> Plan:
        settings, latencies = self._settings, self._settings.latencies
        ordinal = next(self._ordinals)
        rng = random.Random(f"{settings.seed}/{ordinal}")  # noqa: S311 - a seeded schedule, not a secret
        variant = read_variant(request.model, settings.served_model_names) or Variant()
        failure = variant.failure
        if failure is None and rng.random() < settings.fail_rate:
            failure = read_failure(settings.fail_as)
        encoder_ms = latencies.encoder_ms if count.visual or request.media else 0.0
        declared = {
            "preprocess_ms": latencies.preprocess_ms,
            "encoder_ms": encoder_ms + latencies.encoder_ms_per_token * count.visual,
            "prefill_ms": latencies.prefill_ms + latencies.prefill_ms_per_token * count.prompt_tokens,
        }
        times = {name: self._drawn(rng, value * variant.slower) for name, value in declared.items()}
        tokens = answer_tokens(request, request.max_tokens if request.raw.get("ignore_eos") else settings.tokens)
        decode_ms = latencies.decode_ms * variant.slower
        return Plan(ordinal=ordinal, tokens=tokens, failure=failure, decode_ms=decode_ms, **times)

    def _gaps(self, plan: Plan, sample: int) -> list[float]:
        """Milliseconds before each token, the first's counted from the end of its prefill."""
        rng = random.Random(f"{self._settings.seed}/{plan.ordinal}/{sample}")  # noqa: S311 - see _plan
        gaps = [0.0, *(self._drawn(rng, plan.decode_ms) for _ in plan.tokens[1:])]
        traps = self._settings.traps
        if traps.stall_at is not None and traps.stall_at <= len(gaps):
            gaps[traps.stall_at - 1] += traps.stall_ms
        return gaps

    def _drawn(self, rng: random.Random, value_ms: float) -> float:
        return max(0.0, value_ms * rng.gauss(1.0, self._settings.latencies.jitter))

    def _after_hiccup(self, deadline_ns: int) -> int:
        """The deadline, or the end of the hiccup that it falls into."""
        traps = self._settings.traps
        if traps.hiccup_at_seconds is None:
            return deadline_ns
        start_ns = self._made_ns + int(traps.hiccup_at_seconds * 1e9)
        end_ns = start_ns + int(traps.hiccup_seconds * 1e9)
        return end_ns if start_ns <= deadline_ns < end_ns else deadline_ns


async def _fail(failure: Failure) -> None:
    if failure.how == "hang":
        await asyncio.Event().wait()  # until the client gives up
    raise BrokenAnswer(failure.how or "error-event", "Injected failure in the middle of an answer.")
