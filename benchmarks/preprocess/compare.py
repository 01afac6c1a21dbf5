"""The stock Qwen3-VL video processor against ours: same frames, same process, taken in turn.

    python benchmarks/preprocess/compare.py [--rounds 11] [--quick] [--out benchmarks/preprocess/result.json]

Both need one interpreter: run with one that lacks transformers, it starts again in the environment of the tests against
vLLM, which it builds if it is missing. No speed is written before every byte was equal.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CONFIG: dict[str, Any] = {
    "video_processor_type": "Qwen3VLVideoProcessor",
    "patch_size": 16,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "size": {"shortest_edge": 4096, "longest_edge": 25_165_824},
}
"""As in a checkpoint of Qwen3-VL-8B."""
CLIPS = [(15, 480, 854), (8, 1080, 1920)]
SETTLE_SECONDS = 0.2
"""Between sides: torch's threads spin for a while after their work, on the processors that the next side needs."""


def main() -> int:
    """Compare, print, write. Exit status 5: the bytes differ, so there is nothing to time."""
    parser = argparse.ArgumentParser(description="Time the stock video processor and ours.")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--quick", action="store_true", help="One small clip, two rounds: does it still run?")
    parser.add_argument("--out", type=Path, help="Result file.")
    flags = parser.parse_args()
    if importlib.util.find_spec("transformers") is None:
        return again_where_transformers_is()
    clips, rounds = ([(3, 96, 130)], 2) if flags.quick else (CLIPS, flags.rounds)
    result = measure(clips, flags.threads, rounds)
    text = json.dumps(result, indent=1)
    print(text)
    if flags.out and result["equal"]:
        from vision_bench.bench.rundir import write_json  # noqa: PLC0415

        write_json(flags.out, result)
    return 0 if result["equal"] else 5


def again_where_transformers_is() -> int:
    """The same command in the environment of `make test-vllm`."""
    sys.path.insert(0, str(ROOT))
    found = import_module("tests.vllm.environment").ensure(lambda line: print(line, file=sys.stderr))
    # One thread is that module's setting for a server; here the threads are what is measured.
    variables = {k: v for k, v in found.variables(os.environ).items() if k != "OMP_NUM_THREADS"}
    variables |= {"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([str(found.python), *sys.argv], env=variables, check=False).returncode


def measure(clips: list[tuple[int, int, int]], threads: list[int], rounds: int) -> dict[str, Any]:
    """Every number of threads and every clip, each with all sides in turn."""
    from vision_bench.preprocess import stock  # noqa: PLC0415  after the interpreter was chosen

    load_before = os.getloadavg()[0]
    parts = [part(clip, count, rounds) for count in threads for clip in clips]
    return {
        "what": "frames in memory to float32 patches, Qwen3-VL, medians of rounds in which each side runs once",
        "command": "python benchmarks/preprocess/compare.py " + " ".join(sys.argv[1:]),
        "machine": machine() | {"load_before": round(load_before, 2), "load_after": round(os.getloadavg()[0], 2)},
        "versions": stock.versions() | library_versions(),
        "rounds": rounds,
        "equal": all(one["level"] == "E0" for one in parts),
        "parts": parts,
    }


def part(clip: tuple[int, int, int], threads: int, rounds: int) -> dict[str, Any]:
    """One clip and number of threads: first the bytes, then the times."""
    import numpy as np  # noqa: PLC0415

    from vision_bench.preprocess import stock  # noqa: PLC0415
    from vision_bench.preprocess.buffers import BufferPool  # noqa: PLC0415
    from vision_bench.preprocess.equivalence import compare, describe  # noqa: PLC0415
    from vision_bench.preprocess.fast import VideoPreprocessor  # noqa: PLC0415
    from vision_bench.preprocess.spec import VideoSpec  # noqa: PLC0415

    spec = VideoSpec.from_config(CONFIG | {"cap_pixels_per_frame": False})
    stock.set_threads(threads)
    frames = np.random.default_rng(0).integers(0, 256, (*clip, 3), np.uint8)
    theirs, ours = stock.stock_video(spec), VideoPreprocessor(spec, threads=threads)
    comparison = compare(ours(frames), theirs(frames), spec)
    kept = ours(frames).pixel_values
    sides: dict[str, Callable[[], object]] = {
        "stock": partial(theirs, frames),
        "ours": partial(ours, frames),
        "ours, bfloat16": partial(VideoPreprocessor(spec, threads=threads, dtype="bfloat16"), frames),
        "ours, uint8": partial(VideoPreprocessor(spec, threads=threads, dtype="uint8"), frames),
        "ours, memory never used before": partial(VideoPreprocessor(spec, threads=threads, pool=BufferPool(0)), frames),
        "floor: writing the output once": partial(kept.fill, 0.5),
    }
    times = in_turn(sides, rounds, f"{describe(frames)}, {threads} thread(s)")
    return {
        "clip": describe(frames),
        "threads": threads,
        "output_megabytes": round(kept.nbytes / 1e6, 1),
        "level": comparison.level,
        "milliseconds": {name: summary(values) for name, values in times.items()},
        "stock_over_ours": round(median(a / b for a, b in zip(times["stock"], times["ours"], strict=True)), 1),
        "stock_over_ours_by_round": [round(a / b, 1) for a, b in zip(times["stock"], times["ours"], strict=True)],
        "ours_over_floor": round(median(times["ours"]) / median(times["floor: writing the output once"]), 1),
    }


def in_turn(sides: dict[str, Callable[[], object]], rounds: int, label: str) -> dict[str, list[float]]:
    """Seconds of each side, round by round; every other round runs them backwards."""
    for run in sides.values():  # memory that has been used before is what a server has after its first requests
        run()
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides) if number % 2 == 0 else reversed(list(sides)):
            time.sleep(SETTLE_SECONDS)
            began = time.perf_counter()
            sides[name]()
            times[name].append(time.perf_counter() - began)
        print(f"{label}: round {number + 1} of {rounds}", file=sys.stderr)
    return times


def summary(seconds: list[float]) -> dict[str, float]:
    """Median and best, milliseconds."""
    return {"median": round(1e3 * median(seconds), 1), "best": round(1e3 * min(seconds), 1)}


def machine() -> dict[str, Any]:
    """What a repeat needs to know of the hardware."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = sorted({line.partition(":")[2].strip() for line in lines if line.startswith("model name")})
    return {"system": platform.platform(), "processor": names or platform.processor(), "processors": os.cpu_count()}


def library_versions() -> dict[str, str]:
    """Of our side."""
    import numba  # noqa: PLC0415
    import numpy  # noqa: PLC0415

    return {"python": platform.python_version(), "numpy": numpy.__version__, "numba": numba.__version__}


if __name__ == "__main__":
    sys.exit(main())
