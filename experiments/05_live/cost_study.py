"""What does a question about a segment cost beside one about a frame, where the model really looks? See README.md.

Publishes the film of `make demo` and asks the same question about its newest frame and about its last 4 seconds, at 1
and at 2 frames a second, in turn. Once of the baseline engine, once of real vLLM on this CPU. Writes cost.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from live_study import HERE, MOST_PAUSE_SECONDS, ROOT, SEED, camera, numbers, server

from vision_bench.answers.measured import read_measured
from vision_bench.client.live import LiveClient
from vision_bench.client.live_answer import LiveAnswer
from vision_bench.client.live_question import Latest, LiveQuestion, Trailing, Window
from vision_bench.wire.prometheus import Page, difference, read_page

sys.path.insert(0, str(ROOT))  # the vLLM that the tests start

FILM = ROOT / "data" / "raw" / "docu" / "bbb.mp4"
PUBLISHED_FPS = 10
SECONDS = 4.0
WINDOWS: Mapping[str, Window] = {
    "newest frame": Latest(wait_ms=10_000),
    "last 4 s, max_fps=1": Trailing(SECONDS, max_fps=1),
    "last 4 s, max_fps=2": Trailing(SECONDS, max_fps=2),
}
PROMPT = "What is happening?"
HISTOGRAMS = {
    "ttft_ms": "vllm:time_to_first_token_seconds",
    "queue_ms": "vllm:request_queue_time_seconds",
    "prefill_ms": "vllm:request_prefill_time_seconds",
    "decode_ms": "vllm:request_decode_time_seconds",
}
RECEIPT = ("selection", "encode", "queue", "first_token", "upstream_preprocess", "upstream_prefill", "final_token")
TOLD_WITHIN_SECONDS = 10.0
WARM_UP = 2
MOST_PIXELS = 768 * 32 * 32
"""Of a picture, for vLLM: what Qwen3-Omni leaves a video's frames by default."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Engine:
    """What is asked: ``words`` say how it was started, ``most_tokens`` how long an answer may be."""

    root: str
    words: str
    most_tokens: int


def main() -> int:
    """Both engines, the result, a line for each fact."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["baseline", "vllm"], action="append", help="one of them; default: both")
    parser.add_argument("--questions", type=int, default=20, help="about each window")
    parser.add_argument("--film", type=Path, default=FILM, help="default: that of make demo")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "05_live_cost", help="for logs")
    parser.add_argument("--out", type=Path, default=HERE / "cost.json")
    chosen = parser.parse_args()
    if not chosen.film.is_file():
        parser.error(f"{chosen.film} is not there; python script/fetch_film.py gets it, or name another with --film")
    chosen.work.mkdir(parents=True, exist_ok=True)
    rows: Json = {}
    for name in chosen.engine or ["baseline", "vllm"]:
        with {"baseline": baseline, "vllm": vllm}[name](chosen.work) as engine:
            rows[name] = study(engine, chosen.film, chosen.questions, chosen.work / name)
    facts = shown(rows, chosen.questions)
    result = {
        "question": "what does a question about a segment cost beside one about a frame, where the model looks?",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "film": {"name": chosen.film.name, "published_fps": PUBLISHED_FPS},
        "prompt": PROMPT,
        "seed": SEED,
        "shown": facts,
        "engines": rows,
    }
    part = chosen.out.with_name(f".{chosen.out.name}.part")
    part.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    part.replace(chosen.out)
    for fact, holds in facts.items():
        print(f"{'yes' if holds else 'NO '}  {fact}")
    for name, row in rows.items():
        print_table(name, row["windows"])
    return 0 if all(facts.values()) else 1


@contextmanager
def baseline(work: Path) -> Iterator[Engine]:
    """The engine that looks with classical perception (extra ``baseline``)."""
    words = ("engine", "--model", "baseline", "--enable-per-request-metrics")
    with server(words, work / "baseline.log", health="/health") as root:
        yield Engine(root, "vision-bench " + " ".join(words), most_tokens=512)  # its last line says what it looked at


@contextmanager
def vllm(work: Path) -> Iterator[Engine]:
    """Real vLLM with the small checkpoint of ``make test-vllm``, which is built if it is missing."""
    from tests.vllm.environment import ensure  # noqa: PLC0415
    from tests.vllm.server import TRUST, VllmServers  # noqa: PLC0415

    servers = VllmServers(ensure(lambda line: print(line, file=sys.stderr)), work)
    try:
        flags = (
            TRUST,
            "--enable-per-request-metrics",
            # One video may not be larger than a batch (2048 tokens on a CPU): 8 frames of 720p are 2,880.
            "--max-num-batched-tokens=8192",
            # The checkpoint makes pictures smaller than a video's frames; here both keep as many pixels.
            f'--mm-processor-kwargs={{"max_pixels":{MOST_PIXELS}}}',
        )
        found = servers.get(*flags, model="qwen", max_model_len=16384)
        yield Engine(found.root, "vllm serve tiny-omni " + " ".join(found.flags), most_tokens=16)
    finally:
        servers.stop()


def study(engine: Engine, film: Path, questions: int, work: Path) -> Json:
    """All questions of one engine, its windows in turn, so that what else the machine does falls on all alike."""
    work.mkdir(exist_ok=True)
    settings = {"VLLM_BASE_URL": f"{engine.root}/v1", "LIVE_ENABLED": "true"}
    began = time.monotonic()
    with (
        server(("serve",), work / "gateway.log", health="/healthz", **settings) as url,
        camera(film, PUBLISHED_FPS, url, work) as stream_id,
    ):
        found = asyncio.run(ask_all(engine, url, stream_id, questions))
    return {
        "engine": engine.words,
        "max_tokens": engine.most_tokens,
        "seconds": round(time.monotonic() - began, 1),
        "load_average": [round(one, 1) for one in os.getloadavg()],
        "windows": {name: told(answers) for name, answers in found.items()},
    }


Asked = tuple[LiveAnswer, dict[str, float]]


async def ask_all(engine: Engine, url: str, stream_id: str, questions: int) -> dict[str, list[Asked]]:
    """Answers by window, each with what the engine's metrics counted meanwhile."""
    draw = random.Random(SEED)
    found: dict[str, list[Asked]] = {name: [] for name in WINDOWS}
    async with LiveClient(url) as client, httpx.AsyncClient(base_url=engine.root, trust_env=False) as metrics:
        await asyncio.sleep(SECONDS + 1)
        for round_ in range(WARM_UP + questions):
            for name, window in WINDOWS.items():
                await asyncio.sleep(draw.uniform(0, MOST_PAUSE_SECONDS))
                before = await page(metrics)
                asked = LiveQuestion(PROMPT, window, max_tokens=engine.most_tokens, temperature=0.0)
                answer = await client.ask(stream_id, asked)
                if round_ >= WARM_UP:
                    found[name].append((answer, await counted(metrics, before)))
    return found


async def page(metrics: httpx.AsyncClient) -> Page:
    """The engine's metrics now."""
    return read_page((await metrics.get("/metrics")).text)


async def counted(metrics: httpx.AsyncClient, before: Page) -> dict[str, float]:
    """What one question took by the engine's own histograms, ms. They may be written after its answer has left."""
    until = time.monotonic() + TOLD_WITHIN_SECONDS
    moved = difference(before, await page(metrics)).histograms
    while any(name not in moved for name in HISTOGRAMS.values()) and time.monotonic() < until:
        await asyncio.sleep(0.05)
        moved = difference(before, await page(metrics)).histograms
    took = {name: 1e3 * moved[of].total for name, of in HISTOGRAMS.items() if of in moved and moved[of].count == 1}
    if {"ttft_ms", "queue_ms", "prefill_ms"} <= took.keys():
        # Loading and preprocessing: no metric tells them, but the time to the first token begins before them.
        took["before_queue_ms"] = took["ttft_ms"] - took["queue_ms"] - took["prefill_ms"]
    return took


def told(asked: Sequence[Asked]) -> Json:
    """Counts and times of the answers about one window."""
    whole = [answer for answer, _ in asked if answer.receipt is not None and answer.ttft_ms is not None]
    receipts = [answer.receipt for answer in whole if answer.receipt is not None]
    stages = [{one.stage: one.ms for one in answer.stages()} for answer in whole]
    usages = [answer.reply.usage or {} for answer in whole]
    measured = [read_measured({"text": answer.reply.text or ""}) for answer in whole]
    ages = [answer.frames[-1].age_ms for answer in whole if answer.frames]
    seen = sorted({name for _, took in asked for name in took})
    return {
        "answers": len(whole),
        "frames": numbers([float(len(receipt.frames)) for receipt in receipts]),
        "frames_seen": numbers([float(one["frames"]) for one in measured if "frames" in one]),
        "newest_frame_age_ms": numbers([age for age in ages if age is not None]),
        "payload_bytes": numbers([float(one.payload_bytes) for one in receipts if one.payload_bytes is not None]),
        "prompt_tokens": numbers([float(usage["prompt_tokens"]) for usage in usages if "prompt_tokens" in usage]),
        "visual_tokens": numbers([float(one.visual_tokens) for one in receipts if one.visual_tokens is not None]),
        "cached_tokens": numbers(
            [float(one.cache.cached_input_tokens) for one in receipts if one.cache.cached_input_tokens is not None]
        ),
        "client_ttft_ms": numbers([answer.ttft_ms for answer in whole if answer.ttft_ms is not None]),
        "elapsed_ms": numbers([answer.elapsed_ms for answer in whole]),
        "receipt_ms": {
            name: numbers([ms for each in stages if (ms := each.get(name)) is not None]) for name in RECEIPT
        },
        "metrics_ms": {name: numbers([took[name] for _, took in asked if name in took]) for name in seen},
    }


def shown(rows: Mapping[str, Json], questions: int) -> dict[str, bool]:
    """What the study is to show, each as a fact of the runs."""
    windows = [list(row["windows"].values()) for row in rows.values()]
    return {
        "every question has an answer with a receipt": all(
            window["answers"] == questions for each in windows for window in each
        ),
        "a segment costs more bytes than a frame, and twice the frames more still": all(
            a["payload_bytes"]["p50"] < b["payload_bytes"]["p50"] < c["payload_bytes"]["p50"] for a, b, c in windows
        ),
        "and more tokens": all(
            a["prompt_tokens"]["p50"] < b["prompt_tokens"]["p50"] < c["prompt_tokens"]["p50"] for a, b, c in windows
        ),
    }


def print_table(engine: str, windows: Mapping[str, Json]) -> None:
    """Medians, a line a number."""
    print(f"\n{engine}, medians: {' | '.join(windows)}")
    flat: dict[str, list[Any]] = {}
    for window in windows.values():
        for name, value in window.items():
            columns = value.items() if name in ("receipt_ms", "metrics_ms") else [("", value)]
            for part, column in columns:
                if isinstance(column, dict):
                    flat.setdefault(f"{name} {part}".strip(), []).append(column["p50"])
    for name, medians in flat.items():
        print(f"  {name:32} {' | '.join(str(median) for median in medians)}")


if __name__ == "__main__":
    raise SystemExit(main())
