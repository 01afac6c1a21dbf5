"""The highest rate that one core drives: the client alone on a core, rates upwards until its lag says stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.truth.cells import compare, write_workload
from benchmarks.truth.processes import client_cores, lean, run_client, server_cores

Json = dict[str, Any]

MAX_LAG_MS = 5.0
RATES = (100, 150, 200, 250, 300, 350, 400, 500, 600, 700, 800)
SECONDS = 6


def find(folder: Path) -> Json:
    """64-token streams at rising rates; ends at the first at which requests leave more than 5 ms late (p99)."""
    tried: list[Json] = []
    with lean() as server:
        for rate in RATES:
            place = folder / f"ceiling-{rate}"
            place.mkdir()
            server.forget()
            client = run_client(
                write_workload(place), server.url, place / "run",
                "--rate", rate, "--arrivals", "constant", "--duration", SECONDS, "--warmup", 20, "--allow-failures",
            )  # fmt: skip
            cell = compare(client, server.truth())
            lag_ms = cell["lag_p99_ms"]
            is_kept = lag_ms is not None and lag_ms < MAX_LAG_MS
            tried.append(
                {
                    "rate": rate,
                    "lag_p99_ms": lag_ms,
                    "cpu_share": client.step["client"]["cpu_share"],
                    "verdict": cell["verdict"],
                    "ttft_error_p50_ms": cell["ttft_ms"]["error_p50"],
                    "ttft_error_p99_ms": cell["ttft_ms"]["error_p99"],
                    "is_kept": is_kept,
                }
            )
            if not is_kept:
                break
    kept = [one["rate"] for one in tried if one["is_kept"]]
    return {
        "rate": max(kept, default=None),
        "lag_limit_ms": MAX_LAG_MS,
        "cores_apart": client_cores() != server_cores(),
        "tried": tried,
    }
