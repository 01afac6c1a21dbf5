"""Five traps that measuring tools fall into, and failures in mid-stream: the truth beside what is reported."""

from __future__ import annotations

import collections
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.truth.cells import compare, write_workload
from benchmarks.truth.processes import Server, lean, run_client

Json = dict[str, Any]

BIG_BYTES = 1_640_000
ROLE = "role-only first event, 4 tokens an event"
STALL = "a stall of 400 ms inside each stream"
FREEZE = "a freeze of 2 s at 50/s under a cap of 32"
BIG = "bodies of 1.64 MB at 10/s"
OVERLOAD = "40/s offered to a server of 21.9/s"


def _run(server: Server, folder: Path, name: str, *options: object, **values: Any) -> tuple[Json, Json, Json]:
    """The step's summary, the comparison, and the truth by request id."""
    folder = folder / name
    folder.mkdir()
    client = run_client(
        write_workload(folder, **values), server.url, folder / "run",
        "--arrivals", "constant", "--allow-failures", *options,
    )  # fmt: skip
    truth = server.truth()
    return client.step, compare(client, truth), truth


def _said(name: str, truth: str, reported: Json, checks: dict[str, bool]) -> Json:
    return {"trap": name, "truth": truth, "reported": reported, "checks": checks, "is_right": all(checks.values())}


def role_first(folder: Path) -> Json:
    """A role-only event at once, then four tokens an event: no token has come yet, and an event is no token."""
    script = ("--role-first", "--tokens-per-chunk", 4)
    with lean(*script) as server:
        step, cell, _ = _run(server, folder, "role", "--rate", 20, "--duration", 10)
    with lean(*script, "--running-usage") as server:
        told, *_ = _run(server, folder, "role-told", "--rate", 20, "--duration", 10, per_chunk_usage=True)
    ttft, tpot, icl = cell["ttft_ms"], step["tpot_ms"]["p50"], step["icl_ms"]["p50"]
    reported = {
        "ttft_p50_ms": ttft["p50"],
        "tpot_p50_ms": tpot,
        "icl_p50_ms": icl,
        "itl_count": step["itl_ms"]["count"],
    }
    return _said(
        ROLE,
        f"TTFT {ttft['true_p50']} ms; 20 ms an event, 5 ms a token; tokens an event where asked",
        reported,
        {
            "TTFT is the first token's": abs(ttft["error_p50"]) <= 5.0,
            "gaps are the events'": abs(icl - 20.0) <= 2.0,
            "5 ms a token where the counts are told": abs(told["tpot_ms"]["p50"] - 5.0) <= 0.05
            and abs(told["itl_ms"]["p50"] - 5.0) <= 0.5,
            "no per-token times are made up": step["itl_ms"]["count"] == 0,
            "no tokens are made up": step["completion_tokens"]["p50"] == 64,
        },
    )


def stall(folder: Path) -> Json:
    """400 ms of silence inside each stream."""
    with lean("--stall-at", 32, "--stall-ms", 400) as server:
        step, _, _ = _run(server, folder, "stall", "--rate", 20, "--duration", 10)
    longest, gap_p99, ratio = step["max_icl_ms"]["p50"], step["icl_ms"]["p99"], step["stall_ratio"]["p50"]
    return _said(
        STALL,
        "one gap of 405 ms in 63; 305 ms of 715 ms beyond 100 ms",
        {
            "max_icl_p50_ms": longest,
            "icl_p99_ms": gap_p99,
            "stall_ratio_p50": ratio,
            "tpot_p50_ms": step["tpot_ms"]["p50"],
        },
        {
            "the longest gap shows": abs(longest - 405.0) <= 10.0,
            "it is in the tail of the gaps": gap_p99 >= 390.0,
            "its share of the answer shows": abs(ratio - 305.0 / 715.0) <= 0.03,
        },
    )


def freeze(folder: Path) -> Json:
    """The server stands still for 2 s under a concurrency cap: who is due meanwhile waits, sent or not."""
    with lean("--hiccup-at", 8, "--hiccup-s", 2) as server:
        step, _, truth = _run(server, folder, "freeze", "--rate", 50, "--duration", 20, "--concurrency", 32)
    due, waits = step["requests"]["due"], step["response_ms"]
    return _said(
        FREEZE,
        "1000 arrivals, 100 of them in the freeze; the first of those waits 2 s and its 365 ms",
        {
            "due": due,
            "seen_by_server": len(truth),
            "scheduled_p50_ms": waits["p50"],
            "scheduled_p95_ms": waits["p95"],
            "scheduled_p99_ms": waits["p99"],
            "service_p99_ms": step["e2e_ms"]["p99"],
        },
        {
            "no arrival is left out": due == len(truth) == 1000 and step["requests"]["ok"] == 1000,
            "the wait is in the scheduled column": waits["p99"] is not None and waits["p99"] >= 1900.0,
            "so is its width: one in twenty waits a second": waits["p95"] is not None and waits["p95"] >= 1000.0,
        },
    )


def big_bodies(folder: Path) -> Json:
    """1.64 MB each, ten a second: the upload is the client's own work."""
    with lean() as server:
        _, cell, _ = _run(
            server, folder, "big", "--rate", 10, "--duration", 20, "--warmup", 10, extra={"padding": "x" * BIG_BYTES}
        )
    error, cpu = cell["ttft_ms"]["error_p50"], cell["cpu_ms_per_request"]
    return _said(
        BIG,
        f"TTFT {cell['ttft_ms']['true_p50']} ms from the first byte",
        {"ttft_error_p50_ms": error, "cpu_ms_per_request": cpu, "peak_pss_mb": cell["peak_pss_mb"]},
        {
            "TTFT error p50 <= 1.0 ms": error <= 1.0,
            "CPU <= 8 ms a request": cpu <= 8.0,
            "all are there": cell["ok"] == 200,
        },
    )


def overload(folder: Path) -> Json:
    """Eight slots of 365 ms carry 21.9/s; 40/s are offered."""
    with lean("--slots", 8) as server:
        step, cell, _ = _run(server, folder, "overload", "--rate", 40, "--duration", 20)
    ttft, achieved = cell["ttft_ms"], step["achieved_rate"]
    return _said(
        OVERLOAD,
        f"800 answered, TTFT p50 {ttft['true_p50']} and p99 {ttft['true_p99']} ms and longer the longer it lasts",
        {
            "verdict": step["verdict"],
            "reason": step["verdict_reason"],
            "achieved_rate": achieved,
            "ok": cell["ok"],
            "ttft_p50_ms": ttft["p50"],
            "ttft_p99_ms": ttft["p99"],
        },
        {
            "the verdict is SATURATED": step["verdict"] == "SATURATED",
            "achieved stands beside offered": abs(achieved - 21.8) <= 0.7,
            "nobody is dropped": cell["due"] == cell["ok"] == 800,
            "the wait is reported": abs(ttft["error_p50"]) <= 20.0,
        },
    )


def failures(folder: Path) -> Json:
    """Every 7th request gets a 500, every 11th stream is cut in the middle."""
    with lean("--fail-every", 7, "--cut-every", 11) as server:
        step, _, truth = _run(server, folder, "failures", "--rate", 50, "--duration", 10)
    declared = dict(collections.Counter(str(one["outcome"]) for one in truth.values()))
    outcomes = step["requests"]["outcomes"]
    return _said(
        "errors and streams cut in the middle",
        f"{declared}",
        {"outcomes": outcomes, "ttft_count": step["ttft_ms"]["count"], "scheduled_count": step["response_ms"]["count"]},
        {
            "counted by class": outcomes == declared,
            "no failure is in a service column": step["ttft_ms"]["count"] == declared["ok"],
            "every failure is in the scheduled one": step["response_ms"]["count"] == 500,
        },
    )


TRAPS: tuple[Callable[[Path], Json], ...] = (role_first, stall, freeze, big_bodies, overload, failures)
