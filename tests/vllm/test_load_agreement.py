"""A closed-loop sweep of six clips against real vLLM: its own counts agree with what the client saw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.vllm.clips import make_clip
from tests.vllm.server import TRUST, VllmServer, VllmServers

from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.plan import LoadPlan
from vision_bench.bench.run import RunOptions, run_to_end
from vision_bench.bench.rundir import read_records

CLIPS, TOKENS, REQUESTS = 6, 8, 6
WORKLOAD = f"""\
name = "six clips"
kind = "chat"
model = "qwen"
prompt = "What happens in this clip?"
media = "video"
clips = "clips"
fps = 1.0
use_audio = true
max_tokens = {TOKENS}
temperature = 0.0
cache = "unique"
state = "cold"
extra = {{ ignore_eos = true }}
"""


@pytest.fixture(scope="module")
def server(vllm_server: VllmServers) -> VllmServer:
    return vllm_server.get(TRUST, "--enable-per-request-metrics", model="qwen", max_model_len=8192)


@pytest.fixture(scope="module")
def swept(server: VllmServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """The summary of a run with one and with two requests at a time, and its folder."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "clips").mkdir()
    for number in range(CLIPS):
        (folder / "clips" / f"{number}.mp4").write_bytes(
            make_clip(seconds=2, picture=number, tone_hz=200.0 + 50 * number)
        )
    (folder / "workload.toml").write_text(WORKLOAD, encoding="utf-8")
    plan = LoadPlan(rates=(), concurrency=[1, 2], arrivals=parse_process("poisson"), max_requests=REQUESTS)
    options = RunOptions(folder / "workload.toml", server.root, folder / "run", plan, warm_up=1)
    return run_to_end(options), folder / "run"


def test_the_servers_counts_are_the_clients(swept: tuple[dict[str, Any], Path]) -> None:
    """Requests, prompt tokens and output tokens of each step, by /metrics and by the records."""
    summary, _ = swept
    assert summary["is_complete"] and [step["requests"]["ok"] for step in summary["steps"]] == [REQUESTS, REQUESTS]
    for step in summary["steps"]:
        histograms, counters = step["server"]["histograms"], step["server"]["counters"]
        assert histograms["vllm:e2e_request_latency_seconds"]["count"] == REQUESTS
        assert histograms["vllm:time_to_first_token_seconds"]["count"] == REQUESTS
        assert counters["vllm:generation_tokens_total"] == REQUESTS * TOKENS == _total(step["completion_tokens"])
        assert counters["vllm:prompt_tokens_total"] == _total(step["prompt_tokens"])


def test_the_clients_times_hold_the_servers(swept: tuple[dict[str, Any], Path]) -> None:
    """vLLM counts from the loaded media on, the client from its first byte: the client's mean is never the shorter one,
    and what lies between is under the whole. A stage that vLLM tells says so.
    """
    summary, _ = swept
    for step in summary["steps"]:
        histograms = step["server"]["histograms"]
        for metric, column in (
            ("vllm:time_to_first_token_seconds", "ttft_ms"),
            ("vllm:e2e_request_latency_seconds", "e2e_ms"),
        ):
            assert 0 < histograms[metric]["mean_ms"] <= step[column]["mean"] + 1.0
        stages = {stage["stage"]: stage for stage in step["stages"]}
        assert stages["prefill"]["source"] == "/metrics, vllm:request_prefill_time_seconds"
        assert stages["frame_capture"]["source"].startswith("unknown")


def test_unique_clips_met_no_cache(swept: tuple[dict[str, Any], Path]) -> None:
    """vLLM tells cached tokens, and there are none but of the prompt's beginning: no media token was reused."""
    summary, folder = swept
    records = [record for record in read_records(folder, ChatRecord) if record.step in {1, 2, 3}]
    assert len({record.body_sha256 for record in records}) == len(records) == 2 * REQUESTS + 1
    for step in summary["steps"]:
        assert step["repeats"] == 0
        counters = step["server"]["counters"]
        assert counters.get("vllm:mm_cache_hits_total", 0) == 0, json.dumps(counters)


def _total(column: dict[str, Any]) -> int:
    return round(column["mean"] * column["count"])
