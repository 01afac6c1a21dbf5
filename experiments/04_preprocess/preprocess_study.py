"""Does a queue in front of a preprocessor settle under load? The stock one and ours, in turn, on this machine.

    python experiments/04_preprocess/preprocess_study.py [--full] [--out runs/04_preprocess] [--keep]

Three parts, each of them `vision-bench run` of a workload file; README.md says what each asks. Under four minutes on
two cores with nothing else to do, --full about forty. --keep writes result.json and the results of README.md here, and
the plot to docs/images.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ONE_WORKER = ROOT / "workloads" / "preprocess_15x480p.toml"
TWO_WORKERS = HERE / "two_workers.toml"
README = HERE / "README.md"
BEGIN, END = "<!-- results: written by --keep -->\n", "<!-- end of results -->\n"
PLOT = ROOT / "docs" / "images" / "preprocess_load.svg"

SEED_RATE = 5.0
"""Requests a second at which the published study saw the stock processor fall behind."""
OVERLOAD = 1.5
"""Seconds of stock work a second that are offered where this machine keeps up with SEED_RATE."""

QUICK: dict[str, Any] = {
    "alone": 16,
    "lengths": (40, 80, 160),
    "rates": "2,5,10,20,40",
    "each": 36,
    "kinds": ("poisson",),
}
FULL: dict[str, Any] = {
    "alone": 40,
    "lengths": (100, 300, 900),
    "rates": "0.5,1,2,5,10,20,40",
    "each": 120,
    "kinds": ("poisson", "constant"),
}
RATES_FOR_TWO = "10,20,40"
COLOURS = {"stock": "#c2410c", "ours": "#0f766e"}
MARKS = {"STABLE": "o", "SATURATED": "x"}

Json = dict[str, Any]


def main() -> int:
    """Run the parts, tell what they show. Exit status 4: a part could not run."""
    parser = argparse.ArgumentParser(description="The preprocessor under load, stock and ours.")
    parser.add_argument("--full", action="store_true", help="All rates, both kinds of arrivals, longer.")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "04_preprocess", help="Run folders; new or empty.")
    parser.add_argument("--keep", action="store_true", help="Write result, README and plot into the repository.")
    parser.add_argument("--again", action="store_true", help="Only write and draw again what result.json holds.")
    flags = parser.parse_args()
    if flags.again:
        publish(json.loads((HERE / "result.json").read_bytes()))
        return 0
    result = study(flags.out, FULL if flags.full else QUICK)
    result["command"] = "python experiments/04_preprocess/preprocess_study.py" + (" --full" if flags.full else "")
    text = json.dumps(result, indent=1, allow_nan=False) + "\n"
    (flags.out / "result.json").write_text(text, encoding="utf-8")
    for finding in result["findings"]:
        print(("yes  " if finding["holds"] else "NO   ") + finding["what"])
    if flags.keep:
        (HERE / "result.json").write_text(text, encoding="utf-8")
        publish(result)
    return 0


def publish(result: Json) -> None:
    """Put the results into README.md, between its two marks, and draw."""
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(before + BEGIN + "\n" + results(result) + "\n" + END + after, encoding="utf-8")
    draw(result)


def study(out: Path, size: Json) -> Json:
    """All parts, as what is written."""
    load_before = os.getloadavg()[0]
    alone = run(out / "alone", ONE_WORKER, "--concurrency", "1", "--requests", str(size["alone"]))
    service = {step["arm"]: step["service_ms"]["mean"] / 1e3 for step in alone["steps"]}
    rate = SEED_RATE if SEED_RATE * service["stock"] >= 1.3 else round(OVERLOAD / service["stock"], 1)
    constant = ("--arrivals", "constant")
    lengths = [
        run(out / f"length_{count}", ONE_WORKER, "--rate", f"{rate:g}", "--requests", str(count), *constant)
        for count in size["lengths"]
    ]
    ladders = [
        run(out / f"{kind}_{file.stem}", file, "--rate", rates, "--requests", str(size["each"]), "--arrivals", kind)
        for kind in size["kinds"]
        for file, rates in ((ONE_WORKER, size["rates"]), (TWO_WORKERS, RATES_FOR_TWO))
    ]
    rows = {
        "alone": [row(step) for step in alone["steps"]],
        "lengths": [row(step) for summary in lengths for step in summary["steps"]],
        "ladder": [row(step) for summary in ladders for step in summary["steps"]],
    }
    return {
        "what": "frames in memory to float32 patches behind a queue; one clip a request; latency from the due time, ms",
        "overload_rate": rate,
        "machine": machine() | {"load_before": round(load_before, 2), "load_after": round(os.getloadavg()[0], 2)},
        "server": json.loads((out / "alone" / "manifest.json").read_bytes())["server"],
        "workload": alone["workload"],
        "findings": findings(rows, rate),
        **rows,
    }


def run(folder: Path, workload: Path, *load: str) -> Json:
    """One `vision-bench run`; gives its summary. Requests that fail are in it, and end nothing."""
    command = [sys.executable, "-m", "vision_bench.cli", "run", str(workload), "--out", str(folder), *load]
    print("vision-bench run", os.path.relpath(workload, ROOT), *load, file=sys.stderr)
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, text=True, env=variables, check=False)
    if done.returncode not in {0, 3}:
        sys.exit(done.returncode or 4)
    summary: Json = json.loads(done.stdout)
    return summary


def row(step: Json) -> Json:
    """What is kept of a step."""

    def short(column: Json) -> Json:
        return {name: _round(column[name]) for name in ("count", "mean", "p50", "p90", "p99", "max")}

    kept = ("arm", "workers", "arrivals", "offered_rate", "achieved_rate", "duration_seconds", "utilisation", "backlog")
    return {
        **{name: step[name] for name in kept},
        "due": step["requests"]["due"],
        "ok": step["requests"]["ok"],
        **{name: short(step[name]) for name in ("response_ms", "service_ms", "queue_ms")},
        "verdict": step["verdict"],
        "verdict_reason": step["verdict_reason"],
        "schedule_sha256": step["schedule_sha256"],
    }


def findings(rows: Json, rate: float) -> list[Json]:
    """What the study was made to see, and whether it was seen."""
    stock, ours = ([one for one in rows["lengths"] if one["arm"] == arm] for arm in ("stock", "ours"))
    p90 = {arm: [one["response_ms"]["p90"] for one in steps] for arm, steps in (("stock", stock), ("ours", ours))}
    seconds = [one["duration_seconds"] for one in stock]
    grows = None not in p90["stock"] and p90["stock"][-1] > 2 * p90["stock"][0]
    apart = [abs(one / predicted_p90_ms(step) - 1) for one, step in zip(p90["stock"], stock, strict=True) if one]
    flat = None not in p90["ours"] and max(p90["ours"]) < 2 * min(p90["ours"])

    def told(arm: str) -> str:
        shown = ("n/a" if value is None else f"{value:,.0f}" for value in p90[arm])
        return f"{' / '.join(shown)} ms in runs of {' / '.join(f'{length:.0f}' for length in seconds)} s"

    return [
        _finding(
            f"stock is saturated at {rate:g}/s, however long the run",
            all(one["verdict"] == "SATURATED" for one in stock),
        ),
        _finding(f"its p90 is a property of the run's length: {told('stock')}", grows),
        _finding(
            f"0.9 T (u - 1) + service gives each of them within 20 % (at most {max(apart, default=1):.0%} off)",
            len(apart) == len(stock) and max(apart) < 0.2,
        ),
        _finding(f"ours is stable at {rate:g}/s", all(one["verdict"] == "STABLE" for one in ours)),
        _finding(f"its p90 is not: {told('ours')}", flat),
    ]


def results(result: Json) -> str:
    """The results as Markdown."""
    here, versions = result["machine"], result["server"]["arms"]["stock"]
    alone = {one["arm"]: one["service_ms"] for one in result["alone"]}
    lines = [
        f"![p90 against the length of the run, and against the offered load]({os.path.relpath(PLOT, HERE)})",
        "",
        f"{here['processors']} processors ({', '.join(here['processor'])}), {here['system']}, load average "
        f"{here['load_before']} before and {here['load_after']} after; transformers {versions['transformers']}, torch "
        f"{versions['torch']}; every byte of both arms equal. `{result['command']}`",
        "",
        f"Alone, one clip after the other, service took {alone['stock']['mean']:,.0f} ms (stock) and "
        f"{alone['ours']['mean']:,.0f} ms (ours), means of {alone['ours']['count']}. One load, three lengths T, "
        f"{result['overload_rate']:g}/s, constant, one worker; u is the load, p50 and p90 are from the due time:",
        "",
        "| arm | T | arrivals | p50 | p90 | 0.9 T (u - 1) + service | u | backlog, 1/s | achieved, 1/s | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in sorted(result["lengths"], key=lambda step: (step["arm"] == "ours", step["duration_seconds"])):
        predicted = _shown(predicted_p90_ms(one)) if one["utilisation"] > 1 else "-"
        lines.append(
            f"| {one['arm']} | {one['duration_seconds']:.0f} s | {one['due']} | {_shown(one['response_ms']['p50'])} | "
            f"{_shown(one['response_ms']['p90'])} | {predicted} | {one['utilisation']:.2f} | "
            f"{one['backlog']['slope_per_second']:.2f} | {one['achieved_rate'] or 0:.2f} | {one['verdict']} |"
        )
    lines += [
        "",
        f"Load after load, {result['ladder'][0]['due']} arrivals each; an overloaded step is as long as its work:",
        "",
        "| arm | workers | arrivals | offered, 1/s | achieved, 1/s | p50 | p90 | service p50 | u | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in sorted(result["ladder"], key=_order):
        response = one["response_ms"]
        lines.append(
            f"| {one['arm']} | {one['workers']} | {one['arrivals']} | {one['offered_rate']:.1f} | "
            f"{one['achieved_rate'] or 0:.2f} | {_shown(response['p50'])} | {_shown(response['p90'])} | "
            f"{_shown(one['service_ms']['p50'])} | {one['utilisation'] or 0:.2f} | {one['verdict']} |"
        )
    seen = [f"- {'Seen' if one['holds'] else '**Not seen**'}: {one['what']}." for one in result["findings"]]
    return "\n".join([*lines, "", *seen, ""])


def _order(step: Json) -> tuple[bool, int, str, float]:
    return step["arm"] == "ours", step["workers"], step["arrivals"], step["offered_rate"]


def _shown(milliseconds: float | None) -> str:
    return "n/a" if milliseconds is None else f"{milliseconds:,.0f} ms"


def predicted_p90_ms(step: Json) -> float:
    """Of one worker that never rests: the k-th clip of a constant schedule waits k times what is offered too much."""
    over = step["utilisation"] - 1
    return float(0.9 * 1e3 * step["duration_seconds"] * over + step["service_ms"]["mean"])


def draw(result: Json) -> None:
    """Both pictures, side by side, as one SVG."""
    import matplotlib as mpl  # noqa: PLC0415 - of the development environment, and only here

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "04_preprocess", "font.size": 9, "svg.fonttype": "none"}
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    for arm, colour in COLOURS.items():
        steps = [one for one in result["lengths"] if one["arm"] == arm]
        left.plot(
            *_points(steps, "duration_seconds"), "o-", color=colour, label=f"{arm}, {result['overload_rate']:g}/s"
        )
        if arm == "stock":
            lengths = [one["duration_seconds"] for one in steps]
            predicted = [predicted_p90_ms(one) / 1e3 for one in steps]
            left.plot(lengths, predicted, ":", color=colour, label="stock, 0.9 T (u - 1) + service")
        for workers, dash in ((1, "-"), (2, "--")):
            ladder = [one for one in result["ladder"] if _of(one, arm, workers)]
            label = f"{arm}, {workers} worker{'s' * (workers > 1)}"
            right.plot(*_points(ladder, "offered_rate"), dash, color=colour, label=label)
            for verdict in {one["verdict"] for one in ladder}:
                marked = [one for one in ladder if one["verdict"] == verdict]
                right.plot(*_points(marked, "offered_rate"), MARKS.get(verdict, "d"), color=colour, markersize=6)
    left.set(xlabel="length of the run T, s", ylabel="p90 from the due time, s", yscale="log")
    left.set_title("One load, three lengths")
    right.set(xlabel="offered, requests/s", ylabel="p90 from the due time, s", xscale="log", yscale="log")
    right.set_title(f"{result['ladder'][0]['due']} Poisson arrivals a point; o stable, x saturated")
    rates = sorted({one["offered_rate"] for one in result["ladder"]})
    right.set_xticks(rates, [f"{rate:g}" for rate in rates])
    for axes in (left, right):
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda seconds, _place: f"{seconds:g}")
        axes.grid(visible=True, which="major", color="#d4d4d4", linewidth=0.6)
        axes.legend(fontsize=8)
    figure.savefig(PLOT, metadata={"Date": None})


def _of(step: Json, arm: str, workers: int) -> bool:
    return (step["arm"], step["workers"], step["arrivals"]) == (arm, workers, "poisson")


def _points(steps: Sequence[Json], name: str) -> tuple[list[float], list[float]]:
    told = [one for one in steps if one["response_ms"]["p90"] is not None]
    return [one[name] for one in told], [one["response_ms"]["p90"] / 1e3 for one in told]


def machine() -> Json:
    """What a repeat needs to know of the hardware."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = sorted({line.partition(":")[2].strip() for line in lines if line.startswith("model name")})
    return {"system": platform.platform(), "processor": names or platform.processor(), "processors": os.cpu_count()}


def _finding(what: str, holds: bool) -> Json:
    return {"what": what, "holds": holds}


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


if __name__ == "__main__":
    sys.exit(main())
