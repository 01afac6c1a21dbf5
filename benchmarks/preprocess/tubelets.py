"""A clip through the tubelet cache: all of it new, all of it known, and without the cache. One thread, in turn.

python benchmarks/preprocess/tubelets.py [--rounds 9] [--quick] [--out benchmarks/preprocess/tubelets.json]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from vision_bench.bench.rundir import write_json
from vision_bench.preprocess.fast import Kind, VideoPreprocessor
from vision_bench.preprocess.geometry import Size
from vision_bench.preprocess.spec import VideoSpec
from vision_bench.preprocess.tubelets import TubeletCache

CACHE_BYTES = 400_000_000
FRAMES = 16
CASES = [(480, 854, 25_165_824), (720, 1280, FRAMES * 448 * 252), (1080, 1920, FRAMES * 448 * 252)]
"""Height, width, and the most pixels of a clip: as large as they come, then scaled down to 448x224."""


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="Time the tubelet cache.")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="One small case: does it still run?")
    parser.add_argument("--out", type=Path, help="Result file.")
    flags = parser.parse_args()
    cases, rounds = ([(96, 128, 25_165_824)], 2) if flags.quick else (CASES, flags.rounds)
    load_before = os.getloadavg()[0]
    dtypes: tuple[Kind, ...] = ("float32", "bfloat16")
    result = {
        "what": f"{FRAMES} frames, one thread; medians of rounds in which each side runs once, milliseconds",
        "command": "python benchmarks/preprocess/tubelets.py " + " ".join(sys.argv[1:]),
        "machine": {
            "system": platform.platform(),
            "processors": os.cpu_count(),
            "load_before": round(load_before, 2),
            "load_after": round(os.getloadavg()[0], 2),
        },
        "rounds": rounds,
        "parts": [part(case, dtype, rounds) for case in cases for dtype in dtypes],
    }
    print(json.dumps(result, indent=1))
    if flags.out:
        write_json(flags.out, result)
    return 0


def part(case: tuple[int, int, int], dtype: Kind, rounds: int) -> dict[str, Any]:
    """One size and dtype."""
    height, width, most = case
    half = (0.5, 0.5, 0.5)
    spec = VideoSpec("Qwen3VLVideoProcessor", 16, 2, 2, 4096, most, half, half, 1 / 255, False, 768)
    draw = np.random.default_rng(0)
    clips = [draw.integers(0, 256, (FRAMES, height, width, 3), np.uint8) for _ in range(2)]
    preprocess, target = VideoPreprocessor(spec, dtype=dtype), spec.target(FRAMES, Size(height, width))
    out = preprocess(clips[0]).pixel_values
    known, new = TubeletCache(CACHE_BYTES), TubeletCache(CACHE_BYTES)
    known.fill(preprocess, clips[0], target, out)
    # Room for one clip: two in turn are new each time, in memory that was used before.
    new.max_bytes = known.used_bytes + 1
    turn = iter(range(1 << 30))
    pixels = clips[0].reshape(-1).data
    sides: dict[str, Callable[[], object]] = {
        "without": partial(preprocess, clips[0], out=out),
        "all known": partial(known.fill, preprocess, clips[0], target, out),
        "all new": lambda: new.fill(preprocess, clips[next(turn) % 2], target, out),
        "a digest of the pixels alone (BLAKE2b)": lambda: hashlib.blake2b(pixels).digest(),
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    for run in sides.values():
        run()
    for number in range(rounds):
        for name in list(sides) if number % 2 == 0 else reversed(list(sides)):
            began = time.perf_counter()
            sides[name]()
            times[name].append(1e3 * (time.perf_counter() - began))
    if new.hits or known.misses != FRAMES // 2:
        raise RuntimeError(f"the sides are not what they say: {new.text}; {known.text}")
    return {
        "clip": f"{FRAMES} x {width}x{height}",
        "target": f"{target.width}x{target.height}",
        "dtype": dtype,
        "kept_megabytes": round(known.used_bytes / 1e6, 1),
        "milliseconds": {
            name: {"median": round(median(values), 1), "best": round(min(values), 1)} for name, values in times.items()
        },
    }


if __name__ == "__main__":
    sys.exit(main())
