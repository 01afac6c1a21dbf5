"""Plans of a declared model; the times themselves are kept in tests/integration/test_engine_server_timing.py."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from vision_bench.engine.chat.declared.model import DeclaredModel
from vision_bench.engine.chat.declared.settings import DeclaredSettings, Latencies, Traps
from vision_bench.engine.chat.errors import BrokenAnswer
from vision_bench.engine.chat.model import BadChatRequest, ChatRequest, Prepared

INSTANT = Latencies(preprocess_ms=0, encoder_ms=0, prefill_ms=0, decode_ms=0)
REQUEST = ChatRequest(request_id="r", model="qwen", prompt="Hello", system="", media=(), max_tokens=100)


def model(latencies: Latencies = INSTANT, **fields: Any) -> DeclaredModel:
    return DeclaredModel(DeclaredSettings(latencies=latencies, **fields))


async def said(engine: DeclaredModel, request: ChatRequest = REQUEST) -> list[str]:
    prepared = await engine.prepare(request)
    return [token.text async for token in engine.generate(request, prepared)]


async def plan_of(engine: DeclaredModel, request: ChatRequest = REQUEST) -> Prepared:
    return await engine.prepare(replace(request, arrived_ns=time.monotonic_ns()))


async def test_last_token_says_so_and_no_other() -> None:
    """The server finishes on it."""
    engine = model(tokens=4)
    prepared = await engine.prepare(REQUEST)
    flags = [token.is_last async for token in engine.generate(REQUEST, prepared)]
    assert flags == [False, False, False, True]


async def test_ignore_eos_runs_to_max_tokens() -> None:
    """As benchmarks ask for."""
    request = replace(REQUEST, raw={"ignore_eos": True}, max_tokens=33)
    assert len(await said(model(), request)) == 33


async def test_text_has_no_encoder_time() -> None:
    """Nothing to encode; prefill grows by the prompt's tokens."""
    latencies = Latencies(preprocess_ms=0, encoder_ms=500, prefill_ms=1, prefill_ms_per_token=0.5, decode_ms=0)
    prepared = await plan_of(model(latencies))
    assert prepared.stages_ms["declared_encoder"] == 0
    assert prepared.stages_ms["declared_prefill"] == 1 + 0.5 * prepared.prompt_tokens


async def test_jitter_is_seeded() -> None:
    """Two engines with one seed draw the same times; another seed draws others."""
    latencies = replace(INSTANT, prefill_ms=100, jitter=0.2)
    one, two, other = model(latencies, seed=1), model(latencies, seed=1), model(latencies, seed=2)
    draws = [[(await plan_of(engine)).stages_ms["declared_prefill"] for _ in range(5)] for engine in (one, two, other)]
    assert draws[0] == draws[1] != draws[2]
    assert len(set(draws[0])) == 5


async def test_slow_variant_multiplies_every_time() -> None:
    """qwen-slow-3 takes three times as long."""
    latencies = replace(INSTANT, prefill_ms=10)
    prepared = await plan_of(model(latencies), replace(REQUEST, model="qwen-slow-3"))
    assert prepared.stages_ms["declared_prefill"] == 30


async def test_named_status_is_raised_before_anything_is_said() -> None:
    """503 has vLLM's type."""
    with pytest.raises(BadChatRequest) as caught:
        await said(model(), replace(REQUEST, model="qwen-fail-503"))
    assert (caught.value.status, caught.value.type) == (503, "Service Unavailable")


async def test_broken_answer_breaks_half_way() -> None:
    """Five of ten tokens are out by then."""
    engine, request = model(tokens=10), replace(REQUEST, model="qwen-truncate")
    prepared, count = await engine.prepare(request), 0
    with pytest.raises(BrokenAnswer) as caught:
        async for _ in engine.generate(request, prepared):
            count += 1
    assert (count, caught.value.how) == (5, "truncate")


async def test_stages_are_measured_and_not_copied_from_the_declaration() -> None:
    """encoder and prefill stand beside declared_encoder and declared_prefill."""
    engine = model(tokens=1)
    prepared = await engine.prepare(REQUEST)
    [_ async for _ in engine.generate(REQUEST, prepared)]
    assert prepared.stages_ms["prefill"] > 0 == prepared.stages_ms["declared_prefill"]


async def test_stall_delays_its_token_and_all_behind_it() -> None:
    """The third of five is due 30 ms after the start, where it would be due at once; it never comes before."""
    engine = model(tokens=5, traps=Traps(stall_at=3, stall_ms=30))
    request = replace(REQUEST, stream=True)
    prepared = await engine.prepare(request)
    start_ns = time.monotonic_ns()
    times = [time.monotonic_ns() - start_ns async for _ in engine.generate(request, prepared)]
    assert times[1] < times[2]
    assert all(at_ns >= 30e6 for at_ns in times[2:])
