"""How small may a clip be before the baseline engine misses what is in it? One command; see README.md.

Makes a labelled broadcast, cuts it, starts the engine, studies two workloads over their envelopes, writes result.json
and result.svg.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from envelope_plot import draw

HERE = Path(__file__).resolve().parent
CLI = (sys.executable, "-m", "vision_bench.cli")
HEIGHTS, RATES, FLASH_RATES = "120,240,360,480", "0.5,1,2,4", "0.5,2,4,12"
THRESHOLD = "0.95"
START_SECONDS = 60


def main() -> int:
    """Everything, from the film to the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("runs/07_envelope"), help="new folder for film, clips, runs")
    parser.add_argument("--clips", type=int, default=10, help="six-second clips")
    parser.add_argument("--seed", type=int, default=5, help="of the broadcast")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of result.json and result.svg")
    chosen = parser.parse_args()
    began = time.monotonic()
    work: Path = chosen.work
    if work.exists() and any(work.iterdir()):
        print(f"{work} is not empty; give another --work", file=sys.stderr)
        return 2
    work.mkdir(parents=True, exist_ok=True)
    prepare(work, chosen.clips, chosen.seed)
    with engine(work / "engine.log") as url:
        study = envelope(work, url, "labelled", "--height", HEIGHTS, "--fps", RATES)
        flashes = envelope(work, url, "flashes", "--fps", FLASH_RATES, "--no-controls")
    result = {
        "question": "how small may a clip be before the baseline engine misses what is in it?",
        "film": {"genre": "drama", "seed": chosen.seed, "clips": chosen.clips, "lines": 480, "fps": "30000/1001"},
        "seconds": round(time.monotonic() - began, 1),
        "environment": study["environment"],
        "labelled": shortened(study),
        "flashes": shortened(flashes),
    }
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "result.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (chosen.out / "result.svg").write_text(draw(result), "utf-8")
    print(f"{chosen.out / 'result.json'} and result.svg, after {result['seconds']} s; pages: {work}/*/report.html")
    return 0


def prepare(work: Path, clips: int, seed: int) -> None:
    """Film, labels, clips and workloads, side by side."""
    seconds = str(6 * clips)
    command("broadcast", "make", "--genre", "drama", "--seconds", seconds, "--seed", str(seed), "--out", str(work))
    cut = ("--category", "drama", "--start", "0", "--end", seconds, "--encoder", "libx264", "--no-blackout")
    command("prepare", str(work / "drama.mp4"), *cut, "--data-dir", str(work / "data"))
    shutil.move(work / "data" / "clips" / "drama" / "drama", work / "clips")
    for name in ("labelled.toml", "flashes.toml"):
        shutil.copy(HERE / name, work / name)


def envelope(work: Path, url: str, name: str, *axes: str) -> dict[str, Any]:
    """One study; its envelope.json."""
    out = work / name
    flags = ("--target", url, "--threshold", THRESHOLD, "--warmup", "0", "--out", str(out))
    command("envelope", str(work / f"{name}.toml"), *flags, *axes, accepted=(0, 5))
    study: dict[str, Any] = json.loads((out / "envelope.json").read_bytes())
    return study


def command(*words: str, accepted: tuple[int, ...] = (0,)) -> None:
    """A verb, to its end; ends the program where it fails."""
    done = subprocess.run([*CLI, *words], check=False)
    if done.returncode not in accepted:
        print(f"vision-bench {words[0]} ended with {done.returncode}", file=sys.stderr)
        raise SystemExit(done.returncode)


@contextmanager
def engine(log: Path) -> Iterator[str]:
    """The baseline engine on a free port: its root URL."""
    with log.open("w+") as words:
        process = subprocess.Popen([*CLI, "engine", "--model", "baseline", "--port", "0"], stderr=words)
        try:
            for _ in range(START_SECONDS * 10):
                found = re.search(r"(http://\S+)/v1", log.read_text())
                if found:
                    yield found[1]
                    return
                if process.poll() is not None:
                    break
                time.sleep(0.1)
            print(f"the engine did not start; see {log}", file=sys.stderr)
            raise SystemExit(4)
        finally:
            process.terminate()
            process.wait()


def shortened(study: dict[str, Any]) -> dict[str, Any]:
    """What of a study is worth keeping beside the script."""
    rows = [
        {
            "envelope": row["envelope"],
            "words": row["words"],
            "prompt_tokens": row["prompt_tokens"],
            "request_bytes": row["request_bytes"],
            "e2e_p50_ms": row["e2e_ms"]["p50"],
            "requests": row["requests"],
            "accuracy": {key: row["accuracy"][key] for key in ("share", "interval", "count", "right", "clips")},
            "facts": {
                name.removeprefix("measured."): [fact["right"], fact["count"]]
                for name, fact in row["accuracy"]["by_fact"].items()
            },
        }
        for row in study["rows"]
    ]
    kept = ("workload", "threshold", "items", "concurrency", "controls", "flags")
    return {**{key: study[key] for key in kept}, "chosen": study["choice"]["chosen"], "rows": rows}


if __name__ == "__main__":
    raise SystemExit(main())
