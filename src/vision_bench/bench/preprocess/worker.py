"""One worker: a process that preprocesses the clip it is told to, one after the other. The stock arm runs in the Python
of another environment, so this imports what it needs of vision_bench and nothing that may be missing there.

It reads lines and writes lines, JSON. First the job: ``Job`` as an object. It makes its clips, preprocesses each once,
and answers ``{"digests": [...], ...}``. Then the number of a clip a line; it answers ``{"work_ns": ...}``. It ends when
its input ends. ``{"error": ...}`` stands for any answer, and is the last.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TextIO

import numpy as np

from vision_bench.errors import VisionBenchError
from vision_bench.preprocess import reference, stock
from vision_bench.preprocess.equivalence import Processor
from vision_bench.preprocess.fast import VideoPreprocessor
from vision_bench.preprocess.reference import Frames, Patches
from vision_bench.preprocess.spec import VideoSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a worker is for.

    Attributes:
        arm: ``stock`` or ``ours``.
        spec: the fields of :class:`VideoSpec`.
        with_oracle: tell the digests of the NumPy reference, too.
    """

    arm: str
    spec: dict[str, Any]
    frames: int
    width: int
    height: int
    clips: int
    threads: int
    with_oracle: bool = False


def main() -> int:
    """Serve until the input ends."""
    # Libraries print; a line of theirs among the answers would be taken for one.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        try:
            serve(sys.stdin, answers)
        except (VisionBenchError, ImportError, RuntimeError, ValueError, MemoryError) as problem:
            _answer(answers, {"error": f"{type(problem).__name__}: {problem}"})
            return 1
    return 0


def serve(lines: Iterable[str], answers: TextIO) -> None:
    """Answer each line."""
    source = iter(lines)
    job = Job(**json.loads(next(source)))
    spec = _spec(job.spec)
    clips = [make_clip(job, number) for number in range(job.clips)]
    process = processor(job, spec)
    hello: dict[str, Any] = {"digests": [digest(process(clip)) for clip in clips], "versions": _versions(job.arm)}
    if job.with_oracle:
        hello["oracle"] = [digest(reference.video(clip, spec)) for clip in clips]
    _answer(answers, hello)
    for line in source:
        clip = clips[int(line)]
        begin_ns = time.perf_counter_ns()
        patches: Patches | None = process(clip)
        work_ns = time.perf_counter_ns() - begin_ns
        _answer(answers, {"work_ns": work_ns})
        # Given up after the answer, as a server does that has handed it on; ours takes it for the next clip.
        patches = None  # noqa: F841


def processor(job: Job, spec: VideoSpec) -> Processor:
    """The preprocessor of an arm, ready to work."""
    if job.arm == "ours":
        return VideoPreprocessor(spec, threads=job.threads)
    found = stock.stock_video(spec)
    stock.set_threads(job.threads)
    return found


def make_clip(job: Job, number: int) -> Frames:
    """(T, H, W, 3) uint8 noise; the same number gives the same clip."""
    make: Callable[..., Frames] = np.random.default_rng(number).integers
    return make(0, 256, (job.frames, job.height, job.width, 3), np.uint8)


def digest(patches: Patches) -> str:
    """Of every byte, and of the grid."""
    found = hashlib.sha256(np.ascontiguousarray(patches.pixel_values).data)
    found.update(str(patches.grid_thw.tolist()).encode())
    return found.hexdigest()


def _spec(fields: dict[str, Any]) -> VideoSpec:
    return VideoSpec(**fields | {name: tuple(fields[name]) for name in ("mean", "std")})


def _versions(arm: str) -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("numpy", "numba"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found | (stock.versions() if arm == "stock" else {})


def _answer(answers: TextIO, value: dict[str, Any]) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()
