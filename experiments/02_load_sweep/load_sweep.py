"""Where is the knee, and do server and client agree about it?

    python experiments/02_load_sweep/load_sweep.py declared [--out experiments/02_load_sweep]
    python experiments/02_load_sweep/load_sweep.py vllm --target http://127.0.0.1:8000 --model qwen --clips FOLDER

``declared`` starts an engine of known capacity, climbs a ladder of rates over it, and has ``--sweep`` find the knee by
itself. ``vllm`` puts the first six clips of a folder to a running vLLM in closed loops and holds the server's own
counts against the client's. Each writes ``NAME.json`` and ``NAME.svg`` into ``--out``; run folders go below ``runs/``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agreement import agreement
from plot import draw

from vision_bench.bench.rundir import write_json

Json = dict[str, Any]

TTFT_MS, ITL_MS, TOKENS, SLOTS = 50, 5, 64, 8
SERVICE_SECONDS = (TTFT_MS + ITL_MS * (TOKENS - 1)) / 1e3
CAPACITY = SLOTS / SERVICE_SECONDS
"""21.9 requests a second: eight at a time, 365 ms each."""
RATES = (2, 5, 10, 15, 18, 20, 22, 25, 30, 40)
SLO = "ttft_ms<500"
CLIPS = 6
LANES = (1, 2, 4)
COLUMNS = ("scheduled_ttft_ms", "ttft_ms", "response_ms", "e2e_ms", "icl_ms", "tpot_ms")


def main() -> int:
    """One of the two."""
    parser = argparse.ArgumentParser(description="A ladder of load, the knee, and what the server says of it.")
    parser.add_argument("which", choices=["declared", "vllm"])
    parser.add_argument("--target", help="vllm: the server's root, such as http://127.0.0.1:8000.")
    parser.add_argument("--model", default="qwen", help="vllm: the served model.")
    parser.add_argument("--clips", type=Path, help="vllm: a folder of clips; the first six by name are sent.")
    parser.add_argument("--seconds", type=float, default=20.0, help="declared: of each step of the ladder.")
    parser.add_argument("--requests", type=int, default=24, help="vllm: of each step.")
    parser.add_argument("--runs", type=Path, default=Path("runs/02_load_sweep"), help="Where run folders go.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    flags = parser.parse_args()
    flags.runs.mkdir(parents=True, exist_ok=True)
    if flags.which == "vllm" and (flags.target is None or flags.clips is None):
        parser.error("vllm needs --target and --clips")
    load_before = round(os.getloadavg()[0], 2)
    result = declared(flags.runs, flags.seconds) if flags.which == "declared" else vllm(flags)
    result |= {
        "machine": {"system": platform.system(), "python": platform.python_version(), "processors": os.cpu_count()},
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "load_before": load_before,
    }
    write_json(flags.out / f"{flags.which}.json", result)
    (flags.out / f"{flags.which}.svg").write_text(draw(result), encoding="utf-8")
    print(json.dumps({key: value for key, value in result.items() if key != "steps"}, indent=1))
    return 0


def declared(runs: Path, seconds: float) -> Json:
    """The ladder, then the search, against an engine of known capacity."""
    workload = _workload(runs, "declared", model="qwen", media="none", max_tokens=TOKENS)
    with _engine() as url:
        ladder = _run(
            workload, url, runs / "declared_ladder",
            "--rate", ",".join(map(str, RATES)), "--arrivals", "constant", "--duration", seconds, "--slo", SLO,
            "--warmup", 10,
        )  # fmt: skip
        search = _run(
            workload, url, runs / "declared_search", "--sweep", "--rate", 4, "--duration", seconds / 2, "--slo", SLO,
        )  # fmt: skip
    return {
        "question": "an engine of 21.9 requests a second: which rates does the benchmark call STABLE?",
        "declared": {"ttft_ms": TTFT_MS, "itl_ms": ITL_MS, "tokens": TOKENS, "slots": SLOTS},
        "capacity": round(CAPACITY, 2),
        "slo": SLO,
        "steps": [_row(step) for step in ladder["steps"]],
        "knee": search["sweep"],
        "search": [{"rate": step["rate"], "verdict": step["verdict"]} for step in search["steps"]],
    }


def vllm(flags: argparse.Namespace) -> Json:
    """Six clips in closed loops, each body its own variant: no cache can serve it."""
    clips = flags.runs / "clips"
    shutil.rmtree(clips, ignore_errors=True)
    clips.mkdir()
    for clip in sorted(flags.clips.glob("*.mp4"))[:CLIPS]:
        shutil.copy(clip, clips / clip.name)
    workload = _workload(
        flags.runs, "vllm", model=flags.model, media="video", clips="clips", fps=2.0, use_audio=True, max_tokens=16,
        temperature=0.0, cache="unique", extra={"ignore_eos": True},
    )  # fmt: skip
    out = flags.runs / "vllm"
    summary = _run(
        workload, flags.target, out, "--concurrency", ",".join(map(str, LANES)), "--requests", flags.requests,
        "--warmup", 2, "--seed", int(time.time()),
    )  # fmt: skip
    return {
        "question": "do vLLM's own counts agree with what its client saw?",
        "clips": CLIPS,
        "steps": [_row(step) for step in summary["steps"]],
        "agreement": [{"step": step["name"], **agreement(step)} for step in summary["steps"]],
    }


def _row(step: Json) -> Json:
    """What of a step is kept here: the load, the verdict, and p50, p95, p99 with their counts."""
    shown = ("name", "rate", "concurrency", "offered_rate", "achieved_rate", "verdict", "verdict_reason", "goodput")
    columns = {name: {key: step[name][key] for key in ("count", "p50", "p95", "p99")} for name in COLUMNS}
    counts = {key: step["requests"][key] for key in ("due", "ok", "failed")}
    return {key: step[key] for key in shown} | columns | {"requests": counts, "client": step["client"]}


def _workload(folder: Path, name: str, **values: Any) -> Path:
    smallest: Json = {"name": f"load sweep, {name}", "kind": "chat", "prompt": "What happens in this clip?"}
    path = folder / f"{name}.toml"
    path.write_text("".join(f"{key} = {_toml(value)}\n" for key, value in (smallest | values).items()), "utf-8")
    return path


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {json.dumps(part)}" for key, part in value.items()) + "}"
    return json.dumps(value)


def _run(workload: Path, target: str, out: Path, *options: object) -> Json:
    """The verb as a user runs it; its summary. An earlier run in the way is replaced."""
    shutil.rmtree(out, ignore_errors=True)
    words = [sys.executable, "-m", "vision_bench.cli", "run", str(workload), "--target", target, "--out", str(out)]
    done = subprocess.run(
        [*words, *map(str, options), "--allow-failures", "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if not done.stdout:
        raise SystemExit(f"vision-bench run ended with {done.returncode}")
    summary: Json = json.loads(done.stdout)
    return summary


@contextmanager
def _engine() -> Iterator[str]:
    """A declared engine of ``CAPACITY``: its root URL."""
    times: Sequence[object] = ("--preprocess-ms", 0, "--encoder-ms", 0, "--prefill-ms", TTFT_MS, "--decode-ms", ITL_MS)
    command = [sys.executable, "-m", "vision_bench.cli", "engine", "--model", "declared", "--port", "0"]
    command += [*map(str, times), "--tokens", str(TOKENS), "--max-num-seqs", str(SLOTS)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            found = re.search(r"(http://\S+)/v1", process.stderr.readline() if process.stderr else "")
            if found is None:
                raise SystemExit("the engine did not say where it answers")
            time.sleep(1.0)  # it has said where before it listens
            yield found[1]
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main())
