"""Samples: take a slot, let the model speak, cut at ``max_tokens`` and stop strings, stamp every token."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from vision_bench.engine.chat.admission import Slots
from vision_bench.engine.chat.metrics import EngineMetrics
from vision_bench.engine.chat.model import ChatModel, ChatRequest, Prepared
from vision_bench.engine.chat.replies import GRAMMAR_STOP_TOKEN
from vision_bench.engine.chat.stops import StopFilter
from vision_bench.engine.chat.truth import Timeline


@dataclass(frozen=True, slots=True)
class Piece:
    """What one token released: possibly no text (held back for a stop string). ``count`` tokens so far, this sample's.

    ``finish_reason`` is set on the last piece alone.
    """

    index: int
    text: str
    count: int
    finish_reason: str | None = None
    stop_reason: str | int | None = None


Emit = Callable[[Piece], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Answering:
    """One request on its way through the model. ``token_limit``: what ``max_tokens`` and the context leave."""

    model: ChatModel
    request: ChatRequest
    prepared: Prepared
    slots: Slots
    metrics: EngineMetrics
    timeline: Timeline
    token_limit: int

    async def run(self, emit: Emit) -> None:
        """Run all ``n`` samples; pieces of different samples interleave, each sample's are in order."""
        if self.request.n == 1:
            await self._sample(0, emit)
            return
        tasks = [asyncio.create_task(self._sample(index, emit)) for index in range(self.request.n)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _sample(self, index: int, emit: Emit) -> None:
        stops = StopFilter(self.request.stop)
        async with self.slots.take():
            if self.timeline.scheduled_ns is None:
                self.timeline.scheduled_ns = time.monotonic_ns()
            count, previous_ns = 0, None
            tokens = self.model.generate(self.request, self.prepared, sample=index)
            # Models write generate() as an async generator; closing it is what gives their resources back.
            async with aclosing(cast("Any", tokens)):
                async for token in tokens:
                    count += 1
                    now_ns = time.monotonic_ns()
                    self._stamp(now_ns, previous_ns)
                    previous_ns = now_ns
                    is_over = token.is_last or count >= self.token_limit
                    released = stops.feed(token.text, is_last=is_over)
                    finish, reason = self._ending(token.is_last, is_over, released.stopped_by)
                    await emit(Piece(index, released.text, count, finish, reason))
                    if finish is not None:
                        self.timeline.finish_reason = finish
                        return
        raise RuntimeError(f"model {self.model.name} ended sample {index} without a last token")

    def _stamp(self, now_ns: int, previous_ns: int | None) -> None:
        self.timeline.token(now_ns)
        self.metrics.count("vllm:generation_tokens")
        if previous_ns is not None:
            self.metrics.observe("vllm:inter_token_latency_seconds", (now_ns - previous_ns) / 1e9)

    def _ending(self, is_last: bool, is_over: bool, stopped_by: str | None) -> tuple[str | None, str | int | None]:
        """``finish_reason`` and ``stop_reason`` after a token; both None while the answer goes on."""
        if stopped_by is not None:
            return "stop", stopped_by
        if not is_over:
            return None, None
        if not is_last:
            return "length", None
        request = self.request
        has_grammar = bool(request.schema is not None or request.json_object or request.choices or request.regex)
        return "stop", GRAMMAR_STOP_TOKEN if has_grammar else None
