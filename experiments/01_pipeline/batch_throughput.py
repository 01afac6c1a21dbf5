"""Is one batch faster than one clip at a time? The same clips through /chat and through /chat/batch.

    python experiments/01_pipeline/batch_throughput.py [--gateway URL] [--scene category/base] [--controlled]

By default as the original experiment did it: all clips one after another, then the same bodies as one batch.
The second arm may then be served from caches that the first one filled. ``--controlled`` removes that: rounds
alternate which arm goes first, and no body is ever sent twice (picture file and sound both differ).

Exit status: 0 when every item of both arms succeeded, 3 when some failed, 4 when there is no clip.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
from common import PROMPT, Call, Caller, CallLog, arguments, clip_body, encode, run_folder, scene_clips, write_json
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from vision_bench.media.variants import unique

Item = tuple[str, dict[str, Any]]


@dataclass(slots=True)
class Arm:
    """One way of sending all clips, timed from the first byte sent to the last answer read."""

    mode: str
    elapsed_ms: float
    ok: int
    total: int
    lines: list[dict[str, Any]] = field(default_factory=list)
    batch_total_header: str | None = None
    problem: str = ""

    @property
    def arrival(self) -> list[str]:
        """Ids in the order in which their answers came."""
        return [str(line["id"]) for line in self.lines]


def send_one_by_one(caller: Caller, items: list[Item], progress: Progress) -> Arm:
    """The next request leaves when the answer before it is read."""
    bodies = [(name, encode(body)) for name, body in items]
    bar = progress.add_task("sequential", total=len(items))
    lines = []
    started = time.monotonic()
    for name, body in bodies:
        result = caller.call(name, "POST", "/chat", body)
        lines.append(
            {"id": name, "status": result.status, "elapsed_ms": round(result.elapsed_ms), "error": result.problem}
        )
        progress.advance(bar)
    elapsed_ms = (time.monotonic() - started) * 1000
    ok = sum(line["status"] == 200 for line in lines)
    return Arm("sequential", elapsed_ms, ok, len(items), lines)


def send_batch(caller: Caller, items: list[Item], progress: Progress) -> Arm:
    """One request with all items; answers are read as they come."""
    body = encode({"items": [{"id": name, "body": content} for name, content in items]})
    bar = progress.add_task("batch", total=len(items))
    arm = Arm("batch", 0.0, 0, len(items))
    raw: list[dict[str, Any]] = []
    status: int | None = None
    request_id = None
    started = time.monotonic()
    try:
        with caller.client.stream(
            "POST", "/chat/batch", content=body, headers={"Content-Type": "application/json"}
        ) as reply:
            status, request_id = reply.status_code, reply.headers.get("x-request-id")
            arm.batch_total_header = reply.headers.get("x-batch-total")
            if status != 200:
                arm.problem = f"HTTP {status}: {reply.read()[:300].decode(errors='replace')}"
            else:
                for line in reply.iter_lines():
                    if line:
                        raw.append(json.loads(line))
                        progress.advance(bar)
    except (httpx.HTTPError, ValueError) as cause:
        arm.problem = f"{type(cause).__name__}: {cause}"
    arm.elapsed_ms = (time.monotonic() - started) * 1000
    arm.lines = [{key: line.get(key) for key in ("id", "status", "elapsed_ms", "error")} for line in raw]
    arm.ok = sum(line.get("status") == 200 for line in raw)
    caller.log.write(Call("batch", status, arm.elapsed_ms, request_id, raw, arm.problem or None), body)
    return arm


def plain_items(model: str, clips: list[Path], prompt: str) -> list[Item]:
    """One body a clip, encoded once and used by both arms."""
    return [(clip.name, clip_body(model, clip.read_bytes(), prompt)) for clip in clips]


def unique_items(model: str, clips: list[Path], prompt: str, number: int) -> list[Item]:
    """Bodies that no other ``number`` shares, so that no cache can answer for the model."""
    return [(clip.name, clip_body(model, unique(clip, number), prompt)) for clip in clips]


def seed_order(args: Any, caller: Caller, clips: list[Path], progress: Progress) -> list[Arm]:
    """Sequential, then batch, with the same bodies."""
    items = plain_items(args.model, clips, PROMPT[args.lang])
    return [send_one_by_one(caller, items, progress), send_batch(caller, items, progress)]


def controlled(args: Any, caller: Caller, clips: list[Path], progress: Progress) -> list[Arm]:
    """``--rounds`` pairs; even rounds send the batch first; every arm has bodies of its own."""
    arms, number = [], 0
    for round_number in range(args.rounds):
        order = [send_one_by_one, send_batch]
        if round_number % 2:
            order.reverse()
        for send in order:
            number += 1
            arms.append(send(caller, unique_items(args.model, clips, PROMPT[args.lang], number), progress))
    return arms


def summarise(arms: list[Arm], sent: list[str], is_controlled: bool) -> dict[str, Any]:
    """Counts, both times (medians over rounds), their ratio, and the order of arrival of the last batch."""
    sequential = [arm for arm in arms if arm.mode == "sequential"]
    batch = [arm for arm in arms if arm.mode == "batch"]
    all_ok = all(arm.ok == arm.total for arm in arms)
    sequential_ms = statistics.median(arm.elapsed_ms for arm in sequential)
    batch_ms = statistics.median(arm.elapsed_ms for arm in batch)
    last = batch[-1]
    return {
        "clips": len(sent),
        "is_controlled": is_controlled,
        "rounds": len(batch),
        "sequential_ms": round(sequential_ms),
        "batch_ms": round(batch_ms),
        "ratio": round(sequential_ms / batch_ms, 2) if all_ok and batch_ms else None,
        "sequential_ok": sum(arm.ok for arm in sequential),
        "batch_ok": sum(arm.ok for arm in batch),
        "total_each": len(sent) * len(batch),
        "x_batch_total": int(last.batch_total_header) if last.batch_total_header else None,
        "arrival_order": last.arrival,
        "order_differs": last.arrival != sent,
        "lines": last.lines,
        "arms": [asdict(arm) for arm in arms],
        "problems": sorted({arm.problem for arm in arms if arm.problem}),
    }


def show(result: dict[str, Any]) -> None:
    """Two tables and one line."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table(title="Batch throughput" + (" (controlled)" if result["is_controlled"] else ""))
    for title in ("Mode", "Total time (median)", "Success"):
        table.add_column(title)
    total = result["total_each"]
    table.add_row(
        "sequential, one /chat at a time", f"{result['sequential_ms']} ms", f"{result['sequential_ok']}/{total}"
    )
    table.add_row("one /chat/batch", f"{result['batch_ms']} ms", f"{result['batch_ok']}/{total}")
    console.print(table)
    lines = Table(title="Lines in order of arrival (last batch)")
    for title in ("id", "status", "elapsed_ms", "error"):
        lines.add_column(title, overflow="fold")
    for line in result["lines"]:
        lines.add_row(str(line["id"]), str(line["status"]), str(line["elapsed_ms"]), str(line["error"] or ""))
    console.print(lines)
    order = "differs from" if result["order_differs"] else "equals"
    ratio = "n/a (an item failed)" if result["ratio"] is None else f"{result['ratio']:.2f}x"
    console.print(
        f"Sequential {result['sequential_ms']} ms · batch {result['batch_ms']} ms · {ratio} · "
        f"arrival order {order} input order · X-Batch-Total={result['x_batch_total']}"
    )
    for problem in result["problems"]:
        console.print(f"[red]{problem}[/red]")


def main() -> int:
    """Run the comparison; see the module's docstring."""
    parser = arguments("Compare one clip at a time with one batch.")
    parser.add_argument("--controlled", action="store_true", help="alternate the order and never send a body twice")
    parser.add_argument("--rounds", type=int, default=4, help="pairs of arms with --controlled")
    args = parser.parse_args()
    clips = scene_clips(args.scene, args.clips)
    folder = run_folder(args.out)
    with (
        httpx.Client(base_url=args.gateway, timeout=args.timeout) as client,
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        arms = (controlled if args.controlled else seed_order)(args, Caller(client, CallLog(folder)), clips, progress)
    result = summarise(arms, [clip.name for clip in clips], args.controlled)
    show(result)
    write_json(folder / "batch_throughput.json", result)
    print(f"Calls and responses: {folder}")
    return 0 if result["sequential_ok"] == result["batch_ok"] == result["total_each"] else 3


if __name__ == "__main__":
    sys.exit(main())
