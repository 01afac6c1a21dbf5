"""Whether the reference server keeps up with 832x480 at 16 fps on one core, and where a picture's time goes.

    python benchmarks/realtime/keep_up.py [--chunks 20] [--rounds 3] [--quick] [--out benchmarks/realtime/result.json]

The server runs in a process that is held on one core and declares no times, so that it works as fast as it can; its own
`GET /truth` says when. The stages are timed in this process, as CPU time of the thread, which a busy machine does not
stretch as much as it does wall time. Both are written, with the machine's load before and after.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import numpy as np
import websockets
from PIL import Image

from vision_bench.bench.rundir import write_json
from vision_bench.engine.realtime.muxer import FragmentMuxer
from vision_bench.engine.realtime.picture import open_picture
from vision_bench.engine.realtime.pose import ORIGIN, moved
from vision_bench.engine.realtime.world import World
from vision_bench.media.encode import data_uri
from vision_bench.media.marks import draw_marks
from vision_bench.stats import percentile
from vision_bench.wire.realtime.camera import command_for_keys
from vision_bench.wire.realtime.marks import marks_of
from vision_bench.wire.realtime.rollout import num_frames_for_chunks
from vision_bench.wire.realtime.truth import ChunkTruth, read_truth

WIDTH, HEIGHT, FPS = 832, 480, 16
CAMERAS = {"hold": [], "forward": ["w"], "turn": ["l"], "forward, turning and looking up": ["w", "l", "i"]}
PINNED = (
    "import os, sys; os.sched_setaffinity(0, {int(sys.argv.pop(1))}); "
    "from vision_bench.cli.main import main; sys.exit(main())"
)
START_SECONDS = 60


def main() -> int:
    """Measure, print, write. Exit status 5: a core of its own would not be enough."""
    parser = argparse.ArgumentParser(description="Real-time factor of the reference server for generated video.")
    parser.add_argument("--chunks", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="Three chunks, one round: does it still run?")
    parser.add_argument("--out", type=Path, help="Result file.")
    flags = parser.parse_args()
    chunks, rounds = (3, 1) if flags.quick else (flags.chunks, flags.rounds)
    load_before = os.getloadavg()[0]
    core = max(os.sched_getaffinity(0))
    with server_on(core) as (url, process):
        sessions = asyncio.run(play_all(url, process.pid, chunks, rounds))
    result = {
        "picture": f"{WIDTH}x{HEIGHT} at {FPS} fps",
        "chunks_a_session": chunks,
        "server_cores": 1,
        "sessions": sessions,
        "stages_ms_a_picture": {name: stage_times(keys) for name, keys in CAMERAS.items()},
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "load_before": load_before,
            "load_after": os.getloadavg()[0],
        },
    }
    print(json.dumps(result, indent=1))
    if flags.out:
        write_json(flags.out, result)
    return 0 if all(found["cpu_rtf"]["median"] < 1 for found in sessions.values()) else 5


@contextmanager
def server_on(core: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server that takes no longer than it must, on that core alone: its root URL and its process."""
    options = ("--realtime", "--port", "0", "--ttfc-ms", "0", "--chunk-ms", "0")
    command = [sys.executable, "-c", PINNED, str(core), "engine", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = process.stderr.readline() if process.stderr else ""
            found = re.search(r"ws://(\S+?)/v1", said)
            if found is None:
                raise RuntimeError(f"the server did not say where it answers: {said}")
            url = f"http://{found[1]}"
            deadline = time.monotonic() + START_SECONDS
            while time.monotonic() < deadline:
                try:
                    httpx.get(f"{url}/health", trust_env=False)
                    break
                except httpx.ConnectError:
                    time.sleep(0.02)
            yield url, process
        finally:
            process.terminate()


async def play_all(url: str, pid: int, chunks: int, rounds: int) -> dict[str, Any]:
    """Each camera's sessions, in turn: the first one of all is not counted."""
    await play(url, [], 1)
    found: dict[str, Any] = {}
    for name, keys in CAMERAS.items():
        walls, cpus, sizes = [], [], []
        for _ in range(rounds):
            cpu_before = cpu_seconds(pid)
            wall_seconds, size_bytes = await play(url, keys, chunks)
            video_seconds = num_frames_for_chunks(chunks) / FPS
            walls.append(wall_seconds / video_seconds)
            cpus.append((cpu_seconds(pid) - cpu_before) / video_seconds)
            sizes.append(size_bytes)
        found[name] = {"wall_rtf": spread(walls), "cpu_rtf": spread(cpus), "bytes_a_session": round(median(sizes))}
    return found


async def play(url: str, keys: list[str], chunks: int) -> tuple[float, int]:
    """One session: seconds from the slot to the last frame sent, by the server's word, and bytes received."""
    async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
        await client.delete("/truth")
        received = 0
        socket_url = url.replace("http", "ws", 1) + "/v1/realtime/video"
        async with websockets.connect(socket_url, max_size=None, proxy=None) as socket:
            await socket.send(json.dumps(start_message(keys, chunks)))
            while True:
                frame = await socket.recv()
                if isinstance(frame, bytes):
                    received += len(frame)
                elif json.loads(frame)["type"] == "session.done":
                    break
        lines = (await client.get("/truth")).text.splitlines()
    truths = [truth for line in lines if isinstance(truth := read_truth(json.loads(line)), ChunkTruth)]
    return (truths[-1].sent_ns - truths[0].slot_ns) / 1e9, received


def start_message(keys: list[str], chunks: int) -> dict[str, Any]:
    """A session whose camera holds those keys throughout."""
    return {
        "type": "session.start",
        "prompt": "a quiet street",
        "image_reference": {"image_url": picture_url()},
        "width": WIDTH,
        "height": HEIGHT,
        "num_frames": num_frames_for_chunks(chunks),
        "fps": FPS,
        "extra_params": {"camera_action_script": [[keys] * 3] * chunks},
    }


def picture_url() -> str:
    """Soft blobs with some grain: neither the best nor the worst that an encoder can get."""
    draw = np.random.default_rng(5)
    blobs = Image.fromarray(draw.integers(0, 256, (30, 52, 3), dtype=np.uint8)).resize((WIDTH, HEIGHT))
    grain = draw.integers(-6, 7, (HEIGHT, WIDTH, 1))
    buffer = io.BytesIO()
    Image.fromarray(np.clip(np.asarray(blobs, np.int16) + grain, 0, 255).astype(np.uint8)).save(buffer, "PNG")
    return data_uri(buffer.getvalue(), "image/png")


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stage_times(keys: list[str], pictures: int = 120) -> dict[str, Any]:
    """CPU time of this thread for each stage of a picture, ms."""
    world = World(open_picture(picture_url(), width=WIDTH, height=HEIGHT))
    muxer = FragmentMuxer(width=WIDTH, height=HEIGHT, fps=FPS)
    pose = ORIGIN
    spent: dict[str, list[float]] = {"render": [], "mark": [], "encode and mux": []}
    for number in range(pictures):
        pose = moved(pose, command_for_keys(keys))
        world.move(pose)
        picture = timed(world.picture, spent["render"])
        timed(partial(draw_marks, picture.luma, marks_of(number, number // 12, ["a"])), spent["mark"])
        timed(partial(muxer.add, picture), spent["encode and mux"])
    muxer.finish()
    whole = [sum(parts) for parts in zip(*spent.values(), strict=True)]
    return {name: spread(times) for name, times in {**spent, "whole picture": whole}.items()}


def timed(work: Callable[[], Any], spent: list[float]) -> Any:
    """What ``work`` gives; its CPU time goes to ``spent``."""
    began_ns = time.thread_time_ns()
    found = work()
    spent.append((time.thread_time_ns() - began_ns) / 1e6)
    return found


def spread(values: list[float]) -> dict[str, float | int]:
    """How many, their ends and middle, and of twenty and more the 95th percentile."""
    found: dict[str, float | int] = {"count": len(values)}
    fractions = {"min": 0.0, "median": 0.5, **({"p95": 0.95} if len(values) >= 20 else {}), "max": 1.0}
    return found | {name: round(percentile(values, fraction), 3) for name, fraction in fractions.items()}


if __name__ == "__main__":
    sys.exit(main())
