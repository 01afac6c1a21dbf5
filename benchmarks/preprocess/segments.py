"""Twelve frames of a stream sent to a real vLLM in five ways: how long it works before its engine sees them.

    python benchmarks/preprocess/segments.py [--rounds 6] [--out benchmarks/preprocess/segments.json]

vLLM on this CPU with a tiny model and our plugin on, its caches as they come. Each round is another window, moved by
one frame; one request at a time.
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
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.preprocess.films import mp4, say  # noqa: E402  after the root was made importable
from tests.vllm import bodies  # noqa: E402
from tests.vllm.environment import ensure  # noqa: E402
from tests.vllm.installed import unpacked_wheel  # noqa: E402
from tests.vllm.server import VllmServer, VllmServers  # noqa: E402
from tests.vllm.stages import ask  # noqa: E402

from vision_bench.bench.rundir import write_json  # noqa: E402
from vision_bench.media.encode import data_uri, jpeg  # noqa: E402

FRAMES, WIDTH, HEIGHT = 12, 854, 480
KEPT_RATE, CAMERA_RATE = 2, 24
"""Frames a second that are looked at, and that a camera gives."""
FLAGS = ('--limit-mm-per-prompt={"video":1,"image":12}', "--max-num-batched-tokens=8192")


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="Time ways of sending a segment.")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--out", type=Path, help="Result file.")
    flags = parser.parse_args()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        variables = {"PYTHONPATH": str(unpacked_wheel(Path(scratch)))}
        servers = VllmServers(ensure(say), Path(scratch), more=variables)
        try:
            times = measure(servers.get(*FLAGS, max_model_len=8192), flags.rounds)
        finally:
            servers.stop()
    result = {
        "what": f"{FRAMES} frames of {WIDTH}x{HEIGHT}; TTFT - queue - prefill by vLLM's metrics, milliseconds",
        "command": "python benchmarks/preprocess/segments.py " + " ".join(sys.argv[1:]),
        "machine": {
            "system": platform.platform(),
            "processors": os.cpu_count(),
            "load_before": round(load_before, 2),
            "load_after": round(os.getloadavg()[0], 2),
        },
        "rounds": flags.rounds,
        "median_ms": {way: round(median(values), 1) for way, values in times.items()},
        "rounds_ms": times,
    }
    print(json.dumps(result, indent=1))
    if flags.out:
        write_json(flags.out, result)
    return 0


def measure(server: VllmServer, rounds: int) -> dict[str, list[float]]:
    """Milliseconds before the engine, by way and round. The first window warms up and is left out."""
    times: dict[str, list[float]] = {}
    with httpx.Client(timeout=120, trust_env=False) as client:
        for first in range(rounds + 1):
            for way, body in ways(first).items():
                _, stages = ask(client, server, body)
                if first:
                    times.setdefault(way, []).append(round(stages.before_engine_ms, 1))
            say(f"window {first} of {rounds}")
    return times


def ways(first: int) -> dict[str, dict[str, Any]]:
    """Requests about the window that begins with frame ``first``."""
    frames = [picture(number) for number in range(first, first + FRAMES)]
    pictures = [jpeg(frame) for frame in frames]
    together = "data:video/jpeg;base64," + ",".join(data_uri(one, "image/jpeg").partition(",")[2] for one in pictures)
    single = [{"type": "image_url", "image_url": {"url": data_uri(one, "image/jpeg")}} for one in pictures]
    every = [frame for frame in frames for _ in range(CAMERA_RATE // KEPT_RATE)]
    return {
        "an MP4 of all that the camera gave": bodies.ask(bodies.video(mp4(every, CAMERA_RATE)), max_tokens=1),
        "an MP4 of the chosen frames": bodies.ask(bodies.video(mp4(frames, KEPT_RATE)), max_tokens=1),
        "the chosen frames as JPEGs of one video": bodies.ask(bodies.video(together), max_tokens=1),
        "the same again, another question": bodies.ask(bodies.video(together), text="Why?", max_tokens=1),
        "pictures, all but one sent before": bodies.ask(*single, max_tokens=1),
    }


def picture(number: int) -> NDArray[np.uint8]:
    """(H, W, 3), another for each number."""
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    waves = [(columns * (number % 5 + 1) + rows * (n + 1) + 37 * number) % 256 for n in range(3)]
    return np.stack(waves, axis=-1).astype(np.uint8)


if __name__ == "__main__":
    sys.exit(main())
