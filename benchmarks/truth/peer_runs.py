"""Other tools before the same server: the cells and the five traps, their own numbers beside what happened."""

from __future__ import annotations

import base64
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.environments import NotAvailable
from benchmarks.truth import peer_environments, traps, tree
from benchmarks.truth.cells import gap_cv, pair, true_times_ms
from benchmarks.truth.peers import PEERS, Load, Program, Told
from benchmarks.truth.processes import lean

from vision_bench.stats import percentile

Json = dict[str, Any]

IMAGE_SIDE = 640
"""Noise of 640 x 640 in a PNG that is not packed: 1.64 MB as base64."""
SPARE_SECONDS = 90.0
"""A tool's start, its result file, and a queue that drains."""
AT_THE_EDGE = 1
"""The last arrival of a timed window may fall in it or not."""


class PeerFailed(Exception):
    """A tool left no result; the message says how it ended."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of a tool: what was asked, what it told, what the server saw, what it took."""

    title: str
    load: Load
    told: Told
    kept: list[Json]
    connections: int
    taken: tree.Tree

    def as_cell(self) -> Json:
        """With the names that our own cells have."""
        ttfts, _, tpots = true_times_ms(self.kept)
        told, taken, count = self.told, self.taken, len(self.kept)
        begins = sorted(one["first_byte_ns"] for one in self.kept)
        spent = taken.cpu_between(begins[0], max(one["last_token_ns"] or one["first_byte_ns"] for one in self.kept))
        achieved = (count - 1) * 1e9 / (begins[-1] - begins[0])
        return {
            "tool": self.title,
            "rate": self.load.rate,
            "arrivals": "constant",
            "seconds": self.load.seconds,
            "due": self.load.requests,
            "seen_by_server": count,
            "accounted_for": told.ok + told.failed,
            "achieved_over_offered": round(achieved / self.load.rate, 4),
            "reported_rate": None if told.rate is None else round(told.rate, 3),
            "ttft_ms": pair({"count": told.ok, "p50": told.ttft_p50_ms, "p99": told.ttft_p99_ms}, ttfts),
            "tpot_ms": pair({"count": told.ok, "p50": told.tpot_p50_ms, "p99": told.tpot_p99_ms}, tpots),
            "gap_cv": gap_cv(begins),
            "connections": self.connections,
            "processes": taken.processes,
            "cpu_ms_per_request": None if spent is None else round(spent * 1e3 / count, 3),
            "cpu_ms_per_request_whole": round(taken.cpu_seconds * 1e3 / count, 3),
            "peak_pss_mb": round(taken.peak_pss_bytes / 1e6, 1),
        }


def run(program: Program, load: Load, folder: Path, *script: object) -> Ran:
    """One tool, one load, a server of its own.

    Raises:
        PeerFailed: it ended without a result that can be read, or sent next to nothing.
    """
    peer = PEERS[program.name]
    folder.mkdir()
    with lean(*script) as server:
        command = peer.command(program, server.url, load, folder)
        taken = tree.watch(command, peer.environment(), folder, load.seconds + SPARE_SECONDS)
        connections, kept = server.kept()
    try:
        told = peer.read(folder)
    except (OSError, ValueError, KeyError, TypeError) as problem:
        said = (folder / "log").read_text("utf-8", "replace").strip()[-400:]
        raise PeerFailed(f"exit status {taken.exit_status}, {type(problem).__name__}: {problem}; {said}") from problem
    if len(kept) < 2:
        raise PeerFailed(f"exit status {taken.exit_status}: the server saw {len(kept)} requests")
    return Ran(peer.title, load, told, kept, connections, taken)


def measure(
    names: Sequence[str], rates: Sequence[float], seconds: float, folder: Path, say: Callable[[str], None],
    *, with_traps: bool,
) -> Json:  # fmt: skip
    """Each tool at each rate and in each trap. One that cannot be had, or fails, is named with the reason."""
    result: Json = {"tools": [], "cells": [], "traps": [], "failed": []}
    for name in names:
        title = PEERS[name].title
        try:
            program = peer_environments.program(name, say)
        except NotAvailable as problem:
            result["failed"].append({"tool": title, "what": "everything", "reason": str(problem)})
            continue
        result["tools"].append({"tool": title, "version": program.version})
        work = [("cells", f"{rate:g}/s", partial(_cell, rate=rate, seconds=seconds)) for rate in rates]
        work += [("traps", trap, partial(_named, trap)) for trap in TRAPS if with_traps]
        for number, (kind, what, part) in enumerate(work):
            say(f"{title}: {what}")
            try:
                result[kind].append(part(program, folder / f"{program.name}-{number}"))
            except PeerFailed as problem:
                result["failed"].append({"tool": title, "what": what, "reason": str(problem)})
    return result


def _cell(program: Program, folder: Path, *, rate: float, seconds: float) -> Json:
    return run(program, Load(rate, seconds), folder).as_cell()


def _named(trap: str, program: Program, folder: Path) -> Json:
    return {"trap": trap, **TRAPS[trap](program, folder)}


def _said(ran: Ran, checks: dict[str, bool]) -> Json:
    told = ran.told.rounded() | {"due": ran.load.requests, "seen_by_server": len(ran.kept)}
    return {"tool": ran.title, "reported": told, "checks": checks, "is_right": all(checks.values())}


def _near(told: float | None, true: float, by: float) -> bool:
    return told is not None and abs(told - true) <= by


def _at_least(told: float | None, least: float) -> bool:
    return told is not None and told >= least


def _role_first(program: Program, folder: Path) -> Json:
    ran = run(program, Load(20, 5), folder, "--role-first", "--tokens-per-chunk", 4)
    told, true = ran.told, ran.as_cell()["ttft_ms"]["true_p50"]
    return _said(
        ran,
        {
            "TTFT is the first token's": _near(told.ttft_p50_ms, true, 5),
            "5 ms a token": _near(told.tpot_p50_ms, 5, 0.5),
        },
    )


def _stall(program: Program, folder: Path) -> Json:
    ran = run(program, Load(20, 5), folder, "--stall-at", 32, "--stall-ms", 400)
    return _said(
        ran,
        {
            "the longest gap shows": _at_least(ran.told.gap_max_ms, 390),
            "it is in the tail of the gaps": _at_least(ran.told.gap_p99_ms, 390),
        },
    )


def _freeze(program: Program, folder: Path) -> Json:
    ran = run(program, Load(50, 10, is_timed=True, cap=32), folder, "--hiccup-at", 4, "--hiccup-s", 2)
    told = ran.told
    return _said(
        ran,
        {
            "no arrival is left out": min(len(ran.kept), told.ok + told.failed) >= ran.load.requests - AT_THE_EDGE,
            "the wait is in what it reports": _at_least(told.latency_p99_ms, 1900),
            "so is its width: one in ten waits a second": _at_least(told.latency_p90_ms, 1000),
        },
    )


def _big_bodies(program: Program, folder: Path) -> Json:
    ran = run(program, Load(10, 10, image=noise_image()), folder)
    cell = ran.as_cell()
    error, cpu = cell["ttft_ms"]["error_p50"], cell["cpu_ms_per_request"]
    said = _said(
        ran,
        {
            "TTFT error p50 <= 1.0 ms": _near(error, 0, 1.0),
            "CPU <= 8 ms a request": cpu is not None and cpu <= 8.0,
            "all are there": ran.told.ok == ran.load.requests,
        },
    )
    measured = {name: cell[name] for name in ("cpu_ms_per_request", "peak_pss_mb")}
    said["reported"] |= measured | {"ttft_error_p50_ms": error}
    return said


def _overload(program: Program, folder: Path) -> Json:
    ran = run(program, Load(40, 10, is_timed=True), folder, "--slots", 8)
    told, due = ran.told, ran.load.requests
    # From the arithmetic of eight slots, not from the server: it cannot know the wait of a request that was given up.
    waits = [number // 8 * 365.0 - number * 25.0 + 50.0 for number in range(due)]
    true = percentile(waits, 0.5)
    return _said(
        ran,
        {
            "it says that the server was overloaded": False,  # none of the three has a word for it by default
            "achieved stands beside offered": _near(told.rate, 21.8, 1.0),
            "nobody is dropped": told.ok >= due - AT_THE_EDGE,
            "the wait is reported": _near(told.ttft_p50_ms, true, 0.1 * true),
        },
    )


def noise_image() -> str:
    """A valid PNG of 1.64 MB as a ``data:`` URI."""
    row = 3 * IMAGE_SIDE
    noise = random.Random(7).randbytes(row * IMAGE_SIDE)
    lines = b"".join(b"\0" + noise[at : at + row] for at in range(0, len(noise), row))
    head = struct.pack(">IIBBBBB", IMAGE_SIDE, IMAGE_SIDE, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 0)), (b"IEND", b""))
    whole = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return f"data:image/png;base64,{base64.b64encode(whole).decode()}"


TRAPS: dict[str, Callable[[Program, Path], Json]] = {
    traps.ROLE: _role_first,
    traps.STALL: _stall,
    traps.FREEZE: _freeze,
    traps.BIG: _big_bodies,
    traps.OVERLOAD: _overload,
}
