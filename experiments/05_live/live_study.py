"""How old is the frame that a question is about, and where do its milliseconds go? One command; see README.md.

Makes a film, starts the declared engine and a gateway in front of it, publishes the film at several rates and asks
about it while it plays. Writes result.json and result.svg.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import av
import httpx
import numpy as np
from live_plot import draw

from vision_bench.client.live import LiveClient
from vision_bench.client.live_answer import LiveAnswer
from vision_bench.client.live_question import Latest, LiveQuestion, Trailing, Window
from vision_bench.drafts import write_whole
from vision_bench.live.receipt import STAGES, TOTALS, StageTime
from vision_bench.stats import percentile

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CLI = (sys.executable, "-m", "vision_bench.cli")
RATES = (2, 10, 30)
WIDTH, HEIGHT, FILM_FPS, FILM_SECONDS = 640, 360, 30, 10
ENGINE = (
    *("--model", "declared", "--enable-per-request-metrics", "--tokens", "8"),
    *("--preprocess-ms", "20", "--encoder-ms", "30", "--prefill-ms", "40", "--decode-ms", "5"),
)
SEGMENT = Trailing(5, max_fps=2)
MOST_PAUSE_SECONDS = 0.5
"""Between two questions: drawn evenly below the longest interval between frames, so that no rate is favoured."""
SEED = 5
WITHIN_SECONDS = 60
Json = dict[str, Any]


def main() -> int:
    """Every rate, the result, its picture, a line for each fact."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=100, help="about the newest frame, at each rate")
    parser.add_argument("--segments", type=int, default=30, help="about the last 5 s, at each rate")
    parser.add_argument("--quick", action="store_true", help="10 and 5, to see it work")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "05_live", help="for the film and the logs")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of result.json and result.svg")
    chosen = parser.parse_args()
    questions, segments = (10, 5) if chosen.quick else (chosen.questions, chosen.segments)
    began = time.monotonic()
    chosen.work.mkdir(parents=True, exist_ok=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    film = make_film(chosen.work / "film.mp4")
    draw_pause = random.Random(SEED)
    rows = []
    with gateway(chosen.work) as url:
        for rate in RATES:
            with camera(film, rate, url, chosen.work) as stream_id:
                row = asyncio.run(ask_all(url, stream_id, (questions, segments), draw_pause))
                rows.append({"published_fps": rate, **row})
    facts = shown(rows, questions, segments)
    result = {
        "question": "how old is the frame that a question is about, and where do its milliseconds go?",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "python": platform.python_version(),
        "load_average": [round(one, 1) for one in os.getloadavg()],
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(time.monotonic() - began, 1),
        "film": f"{WIDTH}x{HEIGHT}, {FILM_FPS} frames a second, {FILM_SECONDS} s, again and again",
        "engine": "vision-bench engine " + " ".join(ENGINE),
        "seed": SEED,
        "shown": facts,
        "rates": rows,
    }
    write_whole(chosen.out / "result.json", json.dumps(result, indent=1, allow_nan=False) + "\n")
    write_whole(chosen.out / "result.svg", draw(result) + "\n")
    for fact, holds in facts.items():
        print(f"{'yes' if holds else 'NO '}  {fact}")
    print(f"{chosen.out / 'result.json'} and result.svg, after {result['seconds']} s")
    return 0 if all(facts.values()) else 1


def make_film(path: Path) -> Path:
    """A bright square that goes round on a rough ground: a JPEG of it is as large as that of a real picture."""
    rough = np.random.default_rng(SEED).integers(40, 200, (HEIGHT // 8, WIDTH // 8, 3), np.uint8)
    ground = rough.repeat(8, axis=0).repeat(8, axis=1)
    with av.open(str(path), "w") as container:
        track: Any = container.add_stream("libx264", rate=FILM_FPS, options={"preset": "veryfast"})
        track.width, track.height, track.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for index in range(FILM_FPS * FILM_SECONDS):
            picture = ground.copy()
            x = index * 7 % (WIDTH - 80)
            picture[140:220, x : x + 80] = (220, 200, 60)
            container.mux(track.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(track.encode(None))
    return path


def environment(**more: str) -> dict[str, str]:
    """This checkout's package, whatever is installed, and no settings of somebody else's gateway."""
    foreign = ("LIVE_", "GATEWAY_", "VLLM_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), **more}


def free_port() -> int:
    """A port that nobody has at the moment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def server(words: Sequence[str], log: Path, *, health: str, **settings: str) -> Iterator[str]:
    """One of our servers on a free port, ended by its id; gives its root."""
    port = free_port()
    with log.open("wb") as out:
        command = [*CLI, *words, "--port", str(port)]
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment(**settings), cwd=log.parent)
    try:
        deadline = time.monotonic() + WITHIN_SECONDS
        while not answers(f"http://127.0.0.1:{port}{health}"):
            if time.monotonic() > deadline or process.poll() is not None:
                raise SystemExit(f"{words[0]} did not start; see {log}")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def answers(url: str) -> bool:
    """Whether somebody answers there."""
    try:
        return httpx.get(url, timeout=5, trust_env=False).is_success
    except httpx.HTTPError:
        return False


@contextmanager
def gateway(work: Path) -> Iterator[str]:
    """The engine and a gateway in front of it."""
    with (
        server(("engine", *ENGINE), work / "engine.log", health="/health") as engine,
        server(
            ("serve",), work / "gateway.log", health="/healthz", VLLM_BASE_URL=f"{engine}/v1", LIVE_ENABLED="true"
        ) as url,
    ):
        yield url


@contextmanager
def camera(film: Path, rate: int, url: str, work: Path) -> Iterator[str]:
    """The film published at ``rate`` frames a second by a process of its own; gives the stream's id."""
    words = [*CLI, "publish", str(film), "--gateway", url, "--max-fps", str(rate), "--rounds", "0"]
    with (work / f"publish-{rate}.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, env=environment(), text=True)
    try:
        line = process.stdout.readline() if process.stdout else ""
        if not line.startswith("stream "):
            raise SystemExit(f"nothing was published; see {log.name}")
        yield line.removeprefix("stream ").strip()
    finally:
        process.terminate()  # in a script's background SIGINT is ignored
        process.wait(timeout=30)


async def ask_all(url: str, stream_id: str, counts: tuple[int, int], draw_pause: random.Random) -> Json:
    """All questions about one stream, frames before segments; what result.json keeps of them."""
    async with LiveClient(url) as client:
        frames = await ask_some(client, stream_id, Latest(wait_ms=10_000), counts[0], draw_pause)
        parts = await ask_some(client, stream_id, SEGMENT, counts[1], draw_pause)
        state = await client.state(stream_id)
    return {
        "recent_fps": state["recent_fps"],
        "refused_frames": state["vision_bench"]["refused_frames"],
        "newest_frame": told(frames),
        "last_5_s": told(parts),
    }


async def ask_some(
    client: LiveClient, stream_id: str, window: Window, count: int, draw_pause: random.Random
) -> list[LiveAnswer]:
    """``count`` answers, with a drawn pause before each question."""
    found = []
    for _ in range(count):
        await asyncio.sleep(draw_pause.uniform(0, MOST_PAUSE_SECONDS))
        found.append(await client.ask(stream_id, LiveQuestion("What happens now?", window)))
    return found


def told(answers_: Sequence[LiveAnswer]) -> Json:
    """Counts and times of answers of one kind. ``holds_truth``: both processes read one clock here, so that the true
    time between two readings is known, and every range between clocks can be held against it."""
    whole = [answer for answer in answers_ if answer.verdict.outcome == "ok" and answer.receipt is not None]
    stages = [{one.stage: one for one in answer.stages()} for answer in whole]
    ages = [answer.frames[-1].age_ms for answer in whole if answer.frames]
    return {
        "answers": len(whole),
        "asked": len(answers_),
        "frames_per_question": numbers([float(len(answer.frames)) for answer in whole]),
        "payload_bytes": numbers([float(one.receipt.payload_bytes or 0) for one in whole if one.receipt]),
        "prompt_tokens": numbers([float((answer.reply.usage or {}).get("prompt_tokens", 0)) for answer in whole]),
        "frame_age_ms": numbers([age for age in ages if age is not None]),
        "frame_ages_ms": [round(age, 1) for age in ages if age is not None],
        "client_ttft_ms": numbers([answer.ttft_ms for answer in whole if answer.ttft_ms is not None]),
        "stages": {stage.name: column([one[stage.name] for one in stages]) for stage in (*STAGES, *TOTALS)},
        "holds_truth": [sum(found) for found in zip(*(truth(answer) for answer in whole), strict=True)],
    }


def numbers(values: Sequence[float]) -> Json:
    """Count, median, 95th percentile, largest."""
    if not values:
        return {"count": 0, "p50": None, "p95": None, "max": None}
    shown_ = {"p50": percentile(values, 0.5), "p95": percentile(values, 0.95), "max": max(values)}
    return {"count": len(values), **{name: round(value, 2) for name, value in shown_.items()}}


def column(times: Sequence[StageTime]) -> Json:
    """One stage of all answers: exact times, or both ends of the ranges; and why there are none."""
    problems: dict[str, int] = {}
    for one in times:
        if one.problem is not None:
            problems[one.problem] = problems.get(one.problem, 0) + 1
    found: Json = {"ms": numbers([one.ms for one in times if one.ms is not None])}
    ranges = [one for one in times if one.ms is None and one.high_ms is not None]
    if ranges:
        found["low_ms"] = numbers([one.low_ms for one in ranges if one.low_ms is not None])
        found["high_ms"] = numbers([one.high_ms for one in ranges if one.high_ms is not None])
    if problems:
        found["problems"] = problems
    return found


def truth(answer: LiveAnswer) -> tuple[int, int]:
    """Of the ranges of one answer: how many hold the true time, and how many there are."""
    stamps = answer.receipt.stamps if answer.receipt is not None else {}
    held = count = 0
    by_name = {stage.name: stage for stage in (*STAGES, *TOTALS)}
    for one in answer.stages():
        stage = by_name[one.stage]
        if one.ms is None and one.low_ms is not None and one.high_ms is not None:
            true_ms = (stamps[stage.end].ns - stamps[stage.start].ns) / 1e6
            held, count = held + (one.low_ms <= true_ms <= one.high_ms), count + 1
    return held, count


def shown(rows: Sequence[Json], questions: int, segments: int) -> dict[str, bool]:
    """What the experiment is to show, each as a fact of the runs."""
    each = [row[kind] for row in rows for kind in ("newest_frame", "last_5_s")]
    lows = [
        (column_["low_ms"]["p50"] or 0) for one in each for column_ in one["stages"].values() if "low_ms" in column_
    ]
    return {
        "every question has an answer with a receipt": all(
            row["newest_frame"]["answers"] == questions and row["last_5_s"]["answers"] == segments for row in rows
        ),
        "half of the frames are younger than the interval between two": all(
            row["newest_frame"]["frame_age_ms"]["p50"] < 1000 / row["published_fps"] for row in rows
        ),
        "every range between two clocks holds the true time": all(
            one["holds_truth"][0] == one["holds_truth"][1] > 0 for one in each
        ),
        "no stage is negative": all(low >= 0 for low in lows),
    }


if __name__ == "__main__":
    raise SystemExit(main())
