"""Reported beside true: latencies, gaps between arrivals, counts, at one rate."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.truth.processes import ClientRun, Server, run_client

from vision_bench.stats import percentile

Json = dict[str, Any]

TTFT_MS, ITL_MS, TOKENS = 50.0, 5.0, 64
WARM_UP = 20
"""The first requests of a server import what is imported late."""


def write_workload(folder: Path, **values: Any) -> Path:
    """A workload file: a prompt alone, 64 tokens, unless told otherwise."""
    smallest: Json = {
        "name": "truth",
        "kind": "chat",
        "model": "qwen",
        "prompt": "What happens?",
        "media": "none",
        "max_tokens": TOKENS,
    }
    path = folder / "workload.toml"
    path.write_text("".join(f"{key} = {_toml(value)}\n" for key, value in (smallest | values).items()), "utf-8")
    return path


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {json.dumps(part)}" for key, part in value.items()) + "}"
    return json.dumps(value)


def run_cell(  # noqa: PLR0917 - a cell is what it is
    server: Server, folder: Path, name: str, rate: float, arrivals: str, seconds: float, **values: Any
) -> Json:
    """One rate against one server."""
    workload = write_workload(folder, **values)
    server.forget()
    before = server.cpu_seconds()
    client = run_client(
        workload, server.url, folder / name,
        "--rate", rate, "--arrivals", arrivals, "--duration", seconds, "--warmup", WARM_UP, "--allow-failures",
    )  # fmt: skip
    connections = server.kept()[0] if server.name == "lean" else None
    truth = server.truth()
    requests = len(client.records) + WARM_UP
    return {
        "server": server.name,
        "rate": rate,
        "arrivals": arrivals,
        "seconds": seconds,
        **compare(client, truth),
        "connections_whole": connections,  # with those of the warm-up, as the server counts them
        "server_cpu_ms_per_request": round((server.cpu_seconds() - before) * 1e3 / requests, 2),
    }


def compare(client: ClientRun, truth: Mapping[str, Json]) -> Json:
    """What was reported, what was true, and the distance at the same percentile."""
    step = client.step
    sent = [truth[record["request_id"]] for record in client.records if record["request_id"] in truth]
    ttfts, ends, tpots = true_times_ms(sent)
    arrivals = sorted(one["first_byte_ns"] for one in sent)
    requests = step["requests"]
    return {
        "due": requests["due"],
        "ok": requests["ok"],
        "seen_by_server": len(sent),
        "achieved_over_offered": round(step["achieved_rate"] / step["offered_rate"], 4),
        "dispatched_over_offered": round(step["dispatched_rate"] / step["offered_rate"], 4),
        "ttft_ms": pair(step["ttft_ms"], ttfts),
        "e2e_ms": pair(step["e2e_ms"], ends),
        "tpot_ms": pair(step["tpot_ms"], tpots),
        "gap_cv": gap_cv(arrivals),
        "connections": step["client"]["connections_opened"],
        "peak_in_flight": round(step["in_flight"]["mean"], 2),
        "cpu_ms_per_request": step["client"]["cpu_ms_per_request"],
        "cpu_ms_per_request_whole": round(client.cpu_seconds * 1e3 / (len(client.records) + WARM_UP), 3),
        "peak_pss_mb": round(client.peak_pss_bytes / 1e6, 1),
        "lag_p99_ms": step["lag_ms"]["p99"],
        "loop_lag_p99_ms": step["client"]["loop_lag_p99_ms"],
        "verdict": step["verdict"],
        "verdict_reason": step["verdict_reason"],
    }


def true_times_ms(kept: Sequence[Json]) -> tuple[list[float], list[float], list[float]]:
    """TTFT, end to end and TPOT of the requests that the server answered whole."""
    done = [one for one in kept if one["outcome"] == "ok" and one["first_token_ns"] is not None]
    ttfts = [(one["first_token_ns"] - one["first_byte_ns"]) / 1e6 for one in done]
    ends = [(one["last_token_ns"] - one["first_byte_ns"]) / 1e6 for one in done]
    tpots = [
        (one["last_token_ns"] - one["first_token_ns"]) / 1e6 / (one["tokens"] - 1) for one in done if one["tokens"] > 1
    ]
    return ttfts, ends, tpots


def pair(column: Mapping[str, Any], truth: Sequence[float]) -> Json:
    """Reported and true p50 and p99, and reported less true; None where the tool withholds it."""
    pair: Json = {"count": column["count"]}
    for name, fraction in (("p50", 0.5), ("p99", 0.99)):
        true = percentile(truth, fraction) if truth else None
        reported = column[name]
        pair[name] = reported
        pair[f"true_{name}"] = None if true is None else round(true, 4)
        pair[f"error_{name}"] = None if true is None or reported is None else round(reported - true, 4)
    return pair


def gap_cv(times_ns: Sequence[int]) -> float | None:
    """Coefficient of variation of the gaps between arrivals at the server: 0 is constant, 1 is Poisson."""
    gaps = [later - earlier for earlier, later in pairwise(times_ns)]
    return round(statistics.pstdev(gaps) / statistics.fmean(gaps), 3) if len(gaps) > 1 else None


def median_cell(rounds: Sequence[Json]) -> Json:
    """The cell with the middle TTFT error at p99, whole: numbers of one run belong together."""

    def key(cell: Json) -> float:
        error = cell["ttft_ms"]["error_p99"]
        return float("inf") if error is None else abs(error)

    chosen = sorted(rounds, key=key)[(len(rounds) - 1) // 2]
    spread = [cell["ttft_ms"]["error_p99"] for cell in rounds]
    return chosen | {"rounds": len(rounds), "error_p99_of_rounds": spread}
