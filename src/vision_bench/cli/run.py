"""``vision-bench run``: a workload under load, measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from vision_bench.bench.run import RunOptions, Status

ALL_OK, SOME_FAILED, NOTHING_DONE = 0, 3, 4


@click.command()
@click.argument("workload", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--target",
    required=True,
    metavar="URL",
    help="Server; its path picks the wire: /chat, /chat/batch, /v1/chat/completions (also without a path).",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Run folder: new or empty, unless --resume.",
)
@click.option("--rate", metavar="N,N", help="Open loop: requests a second, a step each.")
@click.option(
    "--arrivals",
    default="poisson",
    show_default=True,
    help="constant, poisson, gamma:SHAPE, ramp:TO or trace:FILE (seconds from the start, a line each).",
)
@click.option("--concurrency", metavar="N,N", help="Closed loop: lanes, a step each. With --rate: a cap, one number.")
@click.option("--duration", type=float, metavar="SECONDS", help="Of each step.  [default: 30, unless --requests]")
@click.option("--requests", type=click.IntRange(1), help="At most this many in each step.")
@click.option("--warmup", default=0, show_default=True, type=click.IntRange(0), help="Requests before the first step.")
@click.option("--seed", default=0, show_default=True, help="Of arrivals and unique bodies.")
@click.option("--slo", metavar="LIMITS", help="What a good answer keeps: 'ttft_ms<500,e2e_ms<3000'.")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(1), help="Run all steps this many times.")
@click.option("--batch", type=click.IntRange(1), help="Items in one request to /chat/batch.")
@click.option("--resume", is_flag=True, help="Go on with a run that was cut off; the options must be the same.")
@click.option("--allow-failures", is_flag=True, help="Exit status 0 although requests failed, if some succeeded.")
@click.option("--api-key", envvar="VISION_BENCH_API_KEY", help="Bearer token; also VISION_BENCH_API_KEY.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
def command(as_json: bool, allow_failures: bool, **flags: Any) -> int:
    """Put WORKLOAD's requests to a server under a stated load and measure each one.

    Requests leave when they are due, whatever is still out. Records are written as they come to OUT, with a summary
    that says what it cannot say. docs/methodology.md tells how to read it.

    Exit status: 0 all succeeded; 2 a bad file or option; 3 some failed; 4 nothing could be done; 130 interrupted.
    """
    import json

    from vision_bench.bench.run import run_to_end
    from vision_bench.errors import ConnectFailed

    options = _options(flags)
    try:
        with _progress() as on_status:
            summary = run_to_end(options, on_status=on_status)
    except ConnectFailed as problem:  # nothing was written
        click.echo(f"error: {problem}", err=True)
        return NOTHING_DONE
    if as_json:
        click.echo(json.dumps(summary, allow_nan=False))
    else:
        _show(summary, options.out)
    counts = [step["requests"] for step in summary["steps"]]
    if not any(count["ok"] for count in counts):
        return NOTHING_DONE
    return SOME_FAILED if any(count["failed"] for count in counts) and not allow_failures else ALL_OK


def _options(flags: dict[str, Any]) -> RunOptions:
    from vision_bench.bench.arrivals import parse_process
    from vision_bench.bench.plan import LoadPlan
    from vision_bench.bench.run import RunOptions, load_trace

    arrivals = parse_process(flags["arrivals"])
    plan = LoadPlan(
        rates=_numbers("--rate", flags["rate"], float),
        concurrency=_numbers("--concurrency", flags["concurrency"], int),
        arrivals=arrivals,
        trace=None if arrivals.file is None else load_trace(Path(arrivals.file)),
        duration_seconds=flags["duration"],
        max_requests=flags["requests"],
        seed=flags["seed"],
        repeat=flags["repeat"],
    )
    return RunOptions(
        workload=flags["workload"],
        target=flags["target"],
        out=flags["out"],
        plan=plan,
        warm_up=flags["warmup"],
        slo=flags["slo"],
        batch_size=flags["batch"],
        api_key=flags["api_key"],
        is_resumed=flags["resume"],
    )


def _numbers(name: str, text: str | None, kind: Any) -> list[Any]:
    try:
        return [] if text is None else [kind(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{name} wants numbers joined by commas, such as 1,2,5, not {text!r}") from None


class _progress:
    """One line on stderr, written over twice a second.

    Not rich: drawing its bars takes milliseconds, in which no answer could be stamped.
    """

    def __enter__(self) -> Any:
        import sys

        self._stream = sys.stderr
        self._width = 0
        return self._write if self._stream.isatty() else None

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")

    def _write(self, status: Status) -> None:
        line = status_line(status)
        self._stream.write("\r" + line.ljust(self._width))
        self._width = len(line)
        self._stream.flush()


def status_line(status: Status) -> str:
    """A step's progress in one line."""
    rate = "" if status.offered_rate is None else f"  offered {status.offered_rate:.1f}/s"
    achieved = f"  achieved {status.ok / status.seconds:.1f}/s" if status.seconds > 0 else ""
    left = "" if status.window_seconds is None else f"  {max(0.0, status.window_seconds - status.seconds):.0f} s left"
    medians = "".join(f"  {name} {value:.0f} ms" for name, value in (status.headline or {}).items())
    failures = "".join(f"  {name} {count}" for name, count in (status.failures or {}).items())
    return (
        f"[{status.number}/{status.steps}] {status.step}{rate}{achieved}  in flight {status.in_flight}"
        f"  sent {status.sent}  ok {status.ok}{medians}{failures}{left}"
    )


WORKFLOW = ("workflow ms", "workflow_ms")
COLUMNS = (
    ("TTFT ms", "scheduled_ttft_ms"),
    ("response ms", "response_ms"),
    ("ICL ms", "icl_ms"),
    ("TPOT ms", "tpot_ms"),
)


def _show(summary: dict[str, Any], out: Path) -> None:
    import sys

    from rich.console import Console
    from rich.table import Table

    workload = summary["workload"]
    first = summary["steps"][0] if summary["steps"] else {}
    table = Table(show_lines=False)
    # Where media are encoded inside the clock, what counts is the way from the decision to a checked answer.
    columns = (WORKFLOW, *COLUMNS) if first.get("encode") == "inside" else COLUMNS
    for name in ("step", "due", "ok", "achieved/s", *(name for name, _ in columns), "goodput/s", "verdict"):
        table.add_column(name)
    for step in summary["steps"]:
        requests = step["requests"]
        table.add_row(
            f"{step['name']}, {step['arrivals'] or 'closed loop'}, {step['duration_seconds']:.0f} s",
            str(requests["due"]),
            f"{requests['ok']} ({requests['ok'] / requests['due']:.0%})" if requests["due"] else "0",
            _number(step["achieved_rate"]),
            *(_cell(step[column]) for _, column in columns),
            _number(step["goodput"]),
            step["verdict"],
        )
    console = Console(width=None if sys.stdout.isatty() else 170, markup=False, highlight=False)
    console.print(
        f"{workload['name']} ({workload['fingerprint']}): model {first.get('model')}, media {first.get('media')}, "
        f"region {first.get('region') or 'not told'}"
    )
    console.print(table)
    console.print("p50 / p95 / p99 (count). TTFT and response from the due time, over all that was due; - is withheld.")
    for step in summary["steps"]:
        console.print(f"{step['name']}: {step['verdict']}: {step['verdict_reason']}")
    console.print(f"Run folder: {str(out).encode(errors='replace').decode()}")


def _cell(column: dict[str, Any]) -> str:
    """p50 / p95 / p99 and their count; a dash is withheld, with its reason in summary.json."""
    if not column["count"]:
        return "n/a (0 samples)"
    numbers = " / ".join("-" if column[name] is None else f"{column[name]:.1f}" for name in ("p50", "p95", "p99"))
    return f"{numbers} ({column['count']})"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"
