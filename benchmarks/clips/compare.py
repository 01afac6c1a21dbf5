"""The plain loop against `vision-bench prepare`: same film, same encoder, same bit rate, rounds taken in turn.

    python benchmarks/clips/compare.py [--clips 24] [--rounds 5] [--jobs 1 2] [--out benchmarks/clips/result.json]

Each side is timed as a whole program: our time holds the start of Python, the hash and probe of the source, and the
check of every clip, none of which the loop does. Clips are written below runs/ and removed afterwards.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import imageio_ffmpeg

from vision_bench.bench.rundir import write_json
from vision_bench.media.probe import probe

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SAMPLE_SECONDS = 0.1
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
START_SECONDS = 60


class Cost(NamedTuple):
    """What one run of a program took."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int


def main() -> int:
    """Rounds, then medians, then the file."""
    parser = argparse.ArgumentParser(description="Time the plain loop and `vision-bench prepare`.")
    parser.add_argument("--film", type=Path, default=ROOT / "data" / "raw" / "docu" / "bbb.mp4")
    parser.add_argument("--clips", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, nargs="*", default=[], help="Also time ours with these many at once.")
    parser.add_argument("--out", type=Path, help="Result file.")
    flags = parser.parse_args()
    if not flags.film.is_file():
        print(f"{flags.film} is missing: run script/fetch_film.py", file=sys.stderr)
        return 4
    scratch = ROOT / "runs" / "benchmarks" / "clips"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        result = compare(flags.film.resolve(), scratch, clips=flags.clips, rounds=flags.rounds, jobs=flags.jobs)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        with contextlib.suppress(OSError):  # another benchmark's folder may lie beside it
            scratch.parent.rmdir()
    text = json.dumps(result, indent=1)
    print(text)
    if flags.out:
        write_json(flags.out, result)
    return 0


def compare(film: Path, scratch: Path, *, clips: int, rounds: int, jobs: Sequence[int]) -> dict[str, Any]:
    """Every round runs each side once; sides take turns in going first."""
    tree = make_tree(film, scratch)
    sides = {"loop": loop_command(clips), "prepare": prepare_command(film, tree, clips)}
    sides |= {f"prepare --jobs {n}": [*prepare_command(film, tree, clips), "--jobs", str(n)] for n in jobs}
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    frames: dict[str, list[int]] = {}
    load_before = os.getloadavg()[0]
    for number in range(rounds):
        for name in list(sides) if number % 2 == 0 else reversed(list(sides)):
            shutil.rmtree(tree / "data" / "clips", ignore_errors=True)
            costs[name].append(run(sides[name], tree, clips))
            frames[name] = count_frames(tree / "data" / "clips")
            print(f"round {number + 1} {name}: {costs[name][-1].wall_seconds:.1f} s", file=sys.stderr)
    return {
        "what": f"{clips} clips of 6 s from {START_SECONDS} s, libopenh264, 1500 kbit/s, {film.name}",
        "command": "python benchmarks/clips/compare.py " + " ".join(sys.argv[1:]),
        "machine": machine() | {"load_before": round(load_before, 2)},
        "ffmpeg": imageio_ffmpeg.get_ffmpeg_version(),
        "rounds": rounds,
        "sides": {name: summary(costs[name], frames[name]) for name in sides},
        "speed_up_median": round(statistics.median(ratios(costs["loop"], costs["prepare"])), 3),
        "speed_up_by_round": [round(ratio, 3) for ratio in ratios(costs["loop"], costs["prepare"])],
    }


def ratios(slow: list[Cost], fast: list[Cost]) -> list[float]:
    """How many times sooner the second was done, round by round."""
    return [a.wall_seconds / b.wall_seconds for a, b in zip(slow, fast, strict=True)]


def summary(costs: list[Cost], frames: list[int]) -> dict[str, Any]:
    """Medians of one side, and what its clips hold."""
    return {
        "wall_seconds": [round(cost.wall_seconds, 2) for cost in costs],
        "wall_seconds_median": round(statistics.median(cost.wall_seconds for cost in costs), 2),
        "cpu_seconds_median": round(statistics.median(cost.cpu_seconds for cost in costs), 2),
        "peak_megabytes_median": round(statistics.median(cost.peak_bytes for cost in costs) / 1e6),
        "clips": len(frames),
        "frames": sorted(set(frames)),
    }


def make_tree(film: Path, scratch: Path) -> Path:
    """A work tree as the loop expects one, with the film as data/raw/docu/docu.mp4 and ffmpeg on PATH."""
    raw = scratch / "tree" / "data" / "raw" / "docu"
    raw.mkdir(parents=True)
    (raw / "docu.mp4").symlink_to(film)
    (scratch / "tree" / "bin").mkdir()
    (scratch / "tree" / "bin" / "ffmpeg").symlink_to(imageio_ffmpeg.get_ffmpeg_exe())
    subprocess.run(["git", "init", "--quiet", str(scratch / "tree")], check=True)
    return scratch / "tree"


def loop_command(clips: int) -> list[str]:
    return ["env", f"CLIPS={clips}", f"START={START_SECONDS}", "bash", str(HERE / "seed_loop.sh")]


def prepare_command(film: Path, tree: Path, clips: int) -> list[str]:
    end = START_SECONDS + 6 * clips
    command = [sys.executable, "-m", "vision_bench.cli", "prepare", str(film), "--category", "docu"]
    command += ["--start", str(START_SECONDS), "--end", str(end), "--encoder", "libopenh264", "--no-blackout"]
    return [*command, "--data-dir", str(tree / "data")]


def run(command: list[str], tree: Path, clips: int) -> Cost:
    """Run to the end; memory is the sum over all its processes at the worst sample."""
    environment = os.environ | {"PATH": f"{tree / 'bin'}:{os.environ['PATH']}"}
    environment.pop("GIT_DIR", None)
    before = os.times()
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    peak = [0]
    watcher = threading.Thread(target=watch_memory, args=(process, peak), daemon=True)
    watcher.start()
    said = process.communicate()[1]
    wall = time.monotonic() - started
    watcher.join()
    after = os.times()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed for {clips} clips:\n{said.decode('utf-8', 'replace')[-2000:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(wall, cpu, peak[0])


def watch_memory(process: subprocess.Popen[bytes], peak: list[int]) -> None:
    """Keep the largest sum of resident memory over the processes of one session."""
    while process.poll() is None:
        peak[0] = max(peak[0], resident_bytes(process.pid))
        time.sleep(SAMPLE_SECONDS)


def resident_bytes(session: int) -> int:
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            total += int(fields[21]) * PAGE_BYTES
    return total


def count_frames(folder: Path) -> list[int]:
    """Frames of every clip, counted from packets."""
    counts = []
    for path in sorted(folder.rglob("*.mp4")):
        video = probe(path).video
        counts.append(video.frames if video is not None else 0)
    return counts


def machine() -> dict[str, Any]:
    """What a reader needs to judge the figures."""
    model = ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else ""
    return {"cpu": model, "cpus": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}


if __name__ == "__main__":
    sys.exit(main())
