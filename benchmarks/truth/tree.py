"""A program and every process that it starts: what the kernel says they took, all together."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SAMPLE_SECONDS = 0.5
SAMPLES_PER_PSS = 4
"""Each look at its memory stops a process for about a millisecond: every 2 s, as the kernel walks its pages."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Tree:
    """What a run took. ``samples``: (monotonic ns, CPU seconds so far)."""

    exit_status: int | None = None
    cpu_seconds: float = 0.0
    peak_pss_bytes: int = 0
    processes: int = 0
    samples: list[tuple[int, float]] = field(default_factory=list)

    def cpu_between(self, begin_ns: int, end_ns: int) -> float | None:
        """CPU seconds between two moments, straight lines drawn between samples; None outside them."""
        begin, end = self._cpu_at(begin_ns), self._cpu_at(end_ns)
        return None if begin is None or end is None else end - begin

    def _cpu_at(self, moment_ns: int) -> float | None:
        for (early_ns, early), (late_ns, late) in zip(self.samples, self.samples[1:], strict=False):
            if early_ns <= moment_ns <= late_ns:
                return early + (late - early) * (moment_ns - early_ns) / (late_ns - early_ns)
        return None


def watch(command: Sequence[str], environ: Mapping[str, str], folder: Path, limit_seconds: float) -> Tree:
    """Run a program to its end in a session of its own, its output in ``folder/log``; ended when the limit is over.

    ``exit_status`` is None when it was ended.
    """
    tree = Tree()
    before = children_cpu_seconds()
    deadline = time.monotonic() + limit_seconds
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=dict(environ), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            while process.poll() is None and time.monotonic() < deadline:
                _sample(process.pid, tree)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(SAMPLE_SECONDS)
            tree.exit_status = process.poll()
        finally:
            with suppress(ProcessLookupError):  # what it left behind, and itself when it was too slow
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    tree.cpu_seconds = children_cpu_seconds() - before
    return tree


def _sample(root: int, tree: Tree) -> None:
    members, cpu_seconds = _members(root)
    tree.samples.append((time.monotonic_ns(), cpu_seconds))
    tree.processes = max(tree.processes, len(members))
    if len(tree.samples) % SAMPLES_PER_PSS == 0:
        tree.peak_pss_bytes = max(tree.peak_pss_bytes, sum(map(pss_bytes, members)))


def _members(root: int) -> tuple[list[int], float]:
    """The processes of the session, and the CPU time of them and of children that they have waited for."""
    members: list[int] = []
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == root:
                members.append(int(folder.name))
                ticks += sum(map(int, fields[11:15]))
    return members, ticks / TICKS


def pss_bytes(pid: int) -> int:
    """The proportional set size of a process: shared pages count by their share; 0 when it has ended."""
    with suppress(OSError, IndexError):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(text.partition("\nPss:")[2].split()[0]) * 1024
    return 0


def children_cpu_seconds() -> float:
    """Of children that have ended, and of theirs that were waited for."""
    times = os.times()
    return times.children_user + times.children_system
