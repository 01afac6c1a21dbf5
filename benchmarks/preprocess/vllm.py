"""A real vLLM server with our plugin switched off and on: the same clips, the same answers, the time before the engine.

    python benchmarks/preprocess/vllm.py [--clips 20] [--pairs 2] [--quick] [--out benchmarks/preprocess/vllm.json]

One server runs at a time, off and on in turn; each start takes about a minute. vLLM runs on this CPU with a tiny model
(tests/vllm), so that what is in front of the model is what is seen. Nothing is written unless all answers are equal.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from statistics import median

import httpx
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.preprocess.films import mp4, say  # noqa: E402  after the root was made importable
from tests.vllm import bodies  # noqa: E402
from tests.vllm.environment import ensure  # noqa: E402
from tests.vllm.installed import unpacked_wheel  # noqa: E402
from tests.vllm.server import VllmServer, VllmServers  # noqa: E402
from tests.vllm.stages import Stages, ask  # noqa: E402

from vision_bench.bench.rundir import write_json  # noqa: E402
from vision_bench.preprocess.plugins.in_vllm import SWITCH  # noqa: E402

FRAMES, WIDTH, HEIGHT, RATE = 16, 854, 480, 2
"""A clip has as many frames as the model looks at (2 a second): decoding more would hide what is measured."""
FLAGS = ("--mm-processor-cache-gb=0", "--no-enable-prefix-caching", "--max-num-batched-tokens=8192")
"""Every request is preprocessed, and prefilled in one step: 3,240 visual tokens."""
WARM_UPS = 2


def main() -> int:
    """Measure, print, write. Exit status 5: an answer differs."""
    parser = argparse.ArgumentParser(description="Time vLLM with the stock processor and with ours.")
    parser.add_argument("--clips", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=2, help="How often a server without and one with ours is started.")
    parser.add_argument("--quick", action="store_true", help="One pair, three clips: does it still run?")
    parser.add_argument("--out", type=Path, help="Result file.")
    flags = parser.parse_args()
    count, pairs = (3, 1) if flags.quick else (flags.clips, flags.pairs)
    clips = [make_clip(number) for number in range(count + WARM_UPS)]
    sides: dict[str, list[list[dict[str, float]]]] = {"off": [], "on": []}
    answers: list[list[str]] = []
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        packages = unpacked_wheel(Path(scratch))
        servers = VllmServers(ensure(say), Path(scratch))
        try:
            for pair in range(pairs):
                for side in ("off", "on") if pair % 2 == 0 else ("on", "off"):
                    servers.stop()
                    servers.more = {"PYTHONPATH": str(packages), SWITCH: side}
                    server = servers.get(*FLAGS, max_model_len=8192)
                    say(f"pair {pair + 1} of {pairs}, {side}: started in {server.started_seconds:.0f} s")
                    found, times = measure(server, clips)
                    answers.append(found)
                    sides[side].append(times)
        finally:
            servers.stop()
    result = {
        "what": f"{FRAMES} frames of {WIDTH}x{HEIGHT} a request, one at a time, 8 tokens; by vLLM's metrics",
        "command": "python benchmarks/preprocess/vllm.py " + " ".join(sys.argv[1:]),
        "machine": {
            "system": platform.platform(),
            "processors": os.cpu_count(),
            "load_before": round(load_before, 2),
            "load_after": round(os.getloadavg()[0], 2),
        },
        "clips": count,
        "servers_of_each": pairs,
        "equal_answers": all(one == answers[0] for one in answers),
        "different_answers": len(set(answers[0])),
        "median_ms": {side: medians(runs) for side, runs in sides.items()},
        "requests_ms": sides,
    }
    print(json.dumps({key: value for key, value in result.items() if key != "requests_ms"}, indent=1))
    if flags.out and result["equal_answers"]:
        write_json(flags.out, result)
    return 0 if result["equal_answers"] else 5


def measure(server: VllmServer, clips: list[bytes]) -> tuple[list[str], list[dict[str, float]]]:
    """Answers and stages of all clips but the first ones, each sent when the one before was answered."""
    answers, times = [], []
    with httpx.Client(timeout=120, trust_env=False) as client:
        for clip in clips:
            answer, stages = ask(client, server, bodies.ask(bodies.video(clip), max_tokens=8))
            answers.append(answer)
            times.append(rounded(stages))
    return answers[WARM_UPS:], times[WARM_UPS:]


def rounded(stages: Stages) -> dict[str, float]:
    """As the result file has them."""
    return {
        "ttft": round(stages.ttft_ms, 1),
        "queue": round(stages.queue_ms, 1),
        "prefill": round(stages.prefill_ms, 1),
        "before_engine": round(stages.before_engine_ms, 1),
    }


def medians(runs: list[list[dict[str, float]]]) -> dict[str, float]:
    """Over the requests of all servers of a side."""
    requests = [one for run in runs for one in run]
    return {stage: round(median(one[stage] for one in requests), 1) for stage in requests[0]}


def make_clip(number: int) -> bytes:
    """An MP4 whose every frame differs from every other and from those of other numbers."""
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    return mp4(
        (
            np.stack(
                [(columns * (number % 7 + 1) + rows * (n + 1) + 37 * index + 91 * number) % 256 for n in range(3)],
                axis=-1,
            ).astype(np.uint8)
            for index in range(FRAMES)
        ),
        RATE,
    )


if __name__ == "__main__":
    sys.exit(main())
