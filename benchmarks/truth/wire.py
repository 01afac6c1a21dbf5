"""The wire cases, byte for byte with pauses between their chunks: outcome, text, counts, and which chunk is the first
token."""

from __future__ import annotations

import bisect
import json
from pathlib import Path
from typing import Any

from benchmarks.truth.cells import write_workload
from benchmarks.truth.processes import lean, run_client
from benchmarks.truth.server import CASES

Json = dict[str, Any]


def play(folder: Path) -> Json:
    """Every case once; what was read wrongly, with both readings."""
    cases = json.loads(CASES.read_text("utf-8"))["cases"]
    wrong: list[Json] = []
    with lean() as server:
        for case in cases:
            place = folder / f"case-{case['id']}"
            place.mkdir()
            server.forget()
            client = run_client(
                write_workload(place, model=f"case:{case['id']}"), server.url, place / "run",
                "--rate", 10, "--requests", 1, "--allow-failures",
            )  # fmt: skip
            (record,) = client.records
            kept = server.truth()[record["request_id"]]
            problems = judge(case["expect"], record, kept["written_ns"])
            if problems:
                wrong.append({"case": case["id"], "problems": problems})
    return {"cases": len(cases), "right": len(cases) - len(wrong), "wrong": wrong}


def judge(expect: Json, record: Json, written_ns: list[int]) -> list[str]:
    """What differs from the right reading of a case."""
    first_ns = record["k_ns"][0] if record["k_ns"] else None
    seen: Json = {
        "outcome": record["outcome"],
        "text": record["text"] or "",
        "completion_tokens": record["completion_tokens"],
        "first_any": _chunk_at(first_ns, written_ns),
        "first_text": _chunk_at(record["k1_text_ns"], written_ns),
    }
    wanted = {name: expect[name] for name in seen if name in expect}
    if wanted.get("outcome") == "error":
        wanted = {"outcome": "error"}
    return [f"{name}: {seen[name]!r}, not {value!r}" for name, value in wanted.items() if seen[name] != value]


def _chunk_at(moment_ns: int | None, written_ns: list[int]) -> int | None:
    """The last chunk that had been written by then."""
    return None if moment_ns is None else bisect.bisect_right(written_ns, moment_ns) - 1
