"""Generated video under everything that goes wrong, measured from outside and compared with what the server declares.

One command: it starts the reference server, holds six sessions in two runs, and writes ``result.json`` beside itself.
The run folders, with their pages, stay under ``--out``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vision_bench.drafts import write_whole

ROOT = Path(__file__).resolve().parent.parent.parent
CLI = (sys.executable, "-m", "vision_bench.cli")
# Sessions are numbered in the order in which they start: 0 and 1 at once, then 2 to 5 one after the other.
SERVER = (
    *("--ttfc-ms", "1200", "--chunk-ms", "700", "--jitter", "0.08", "--seed", "3"),
    *("--fault", "stall@12=3000#0", "--fault", "error@0#2", "--fault", "drop@8#4"),
)
PAIR = ("workloads/lingbot_live_camera.toml", "--model", "lingbot-world", "--concurrency", "2")
TROUBLE = (
    *("workloads/lingbot_forward.toml", "--model", "lingbot-world", "--num-chunks", "16"),
    *("--concurrency", "1", "--requests", "4", "--allow-failures"),
)
WITHIN_SECONDS = 60
Json = dict[str, Any]


@contextmanager
def server() -> Iterator[int]:
    """The reference server on a free port, ended by its id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = subprocess.Popen([*CLI, "engine", "--realtime", "--port", str(port), *SERVER], env=environment())
    try:
        wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)


def environment() -> dict[str, str]:
    """This checkout's package, whatever is installed."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until the server answers."""
    deadline = time.monotonic() + WITHIN_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise SystemExit("the reference server did not start")


def measure(words: tuple[str, ...], port: int, out: Path) -> Json:
    """One run; gives its only step."""
    command = [*CLI, "run", *words, "--target", f"ws://127.0.0.1:{port}", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), check=False)
    if done.returncode:
        raise SystemExit(f"vision-bench run ended with {done.returncode}")
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    step: Json = summary["steps"][0]
    return step


def told(step: Json) -> Json:
    """What result.json keeps of a step."""
    error = step["client_error"]
    kept = ("count", "mean", "p50", "p90", "max")
    columns = {
        "ttfc_ms": step["startup"]["ttfc_ms"],
        "first_decodable_frame_ms": step["startup"]["first_decodable_frame_ms"],
        "interval_steady_ms": step["chunks"]["interval_steady_ms"],
        "queue_wait_ms": step["queue_wait_ms"],
        "ack_ms": step["interactions"]["ack_ms"],
        "first_affected_ms": step["interactions"]["first_affected_ms"],
        "first_affected_chunks": step["interactions"]["first_affected_chunks"],
        "server_lateness_ms": error["server_lateness_ms"],
    }
    return {
        "verdict": f"{step['verdict']}: {step['verdict_reason']}",
        "outcomes": step["requests"]["outcomes"],
        "failures": step["failures"],
        "oddities": step["oddities"],
        "numbers": {name: {key: column[key] for key in kept} for name, column in columns.items()},
        "stalls": step["pictures"]["stalls"],
        "stalled_ms": step["pictures"]["stalled_ms"],
        "integrity": step["integrity"],
        "pixels": step["pixels"],
        "recovery": [{key: one[key] for key in one if key != "undisturbed_ttfcs_ms"} for one in step["recovery"]],
        "client_error_median_absolute_ms": error["median_absolute_ms"],
        "client_error_is_within_target": error["is_within_target"],
        "stalls_against_truth": error["stalls"],
        "client": step["client"],
    }


def shown(pair: Json, trouble: Json) -> dict[str, bool]:
    """What the experiment is to show, each as a fact of the two runs."""
    whole = [one for one in pair["each"] if one["outcome"] == "ok"]
    pixels = (pair["pixels"], trouble["pixels"])
    errors = (pair["client_error"], trouble["client_error"])
    return {
        "two sessions of 40 chunks at once came to their end": [one["chunks"] for one in whole] == [40, 40],
        "the second one waited for the first": pair["queue_wait_ms"]["max"] > 20_000,
        "the injected stall was seen": pair["pictures"]["stalled_ms"] > 1_000,
        "the same player stalls as often over the server's clock": all(
            one["stalls"]["same_count"] == one["stalls"]["sessions"] for one in errors
        ),
        "every event began three chunks later": pair["interactions"]["first_affected_chunks"]["max"] == 3
        and pair["interactions"]["started"] == pair["interactions"]["sent"],
        "every event is seen in the pixels of its chunk": pixels[0]["events_seen_there"] == pixels[0]["events_started"],
        "every decoded picture is the one that was announced": all(
            found["read"] == found["pictures"] and not found["other_number"] + found["other_chunk"] for found in pixels
        ),
        "the late error has its name": trouble["requests"]["outcomes"].get("late_error") == 1,
        "the dropped connection has its name": trouble["requests"]["outcomes"].get("connection_lost") == 1,
        "the session after it was served": len(trouble["recovery"]) == 1
        and trouble["recovery"][0]["next_ttfc_ms"] is not None,
        "the client's median errors are below 5 ms": all(one["is_within_target"] for one in errors),
    }


def main() -> int:
    """Both runs, the result, a line for each fact."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="run folders  [default: runs/03_realtime_video/<time>]")
    parser.add_argument("--result", type=Path, default=Path(__file__).with_name("result.json"))
    asked = parser.parse_args()
    out = asked.out or ROOT / "runs" / "03_realtime_video" / time.strftime("%Y%m%d-%H%M%S")
    with server() as port:
        pair = measure(PAIR, port, out / "pair")
        trouble = measure(TROUBLE, port, out / "trouble")
    facts = shown(pair, trouble)
    result = {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "python": platform.python_version(),
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "server": "vision-bench engine --realtime " + " ".join(SERVER),
        "shown": facts,
        "pair": {"command": "vision-bench run " + " ".join(PAIR), **told(pair)},
        "trouble": {"command": "vision-bench run " + " ".join(TROUBLE), **told(trouble)},
    }
    write_whole(asked.result, json.dumps(result, indent=1, allow_nan=False) + "\n")
    for fact, holds in facts.items():
        print(f"{'yes' if holds else 'NO '}  {fact}")
    print(f"pages: {out}/pair/report.html, {out}/trouble/report.html")
    return 0 if all(facts.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
