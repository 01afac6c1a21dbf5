"""``vision-bench run``: a workload under load, measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vision_bench.cli.run_realtime import REALTIME

if TYPE_CHECKING:
    from vision_bench.bench.run import RunOptions

ALL_OK, SOME_FAILED, NOTHING_DONE = 0, 3, 4


CHAT = (
    click.Option(["--batch"], type=click.IntRange(1), help="Items in one request to /chat/batch."),
    click.Option(
        ["--preprocess-pairs"],
        type=click.IntRange(6),
        help="First so many pairs, one request at a time: what media cost before the model, by difference.",
    ),
)
OWN = (*CHAT, *REALTIME)
"""Options that one kind alone takes, None unless given; ``Kind.options`` has their names."""


@click.command(params=[*OWN])
@click.argument("workload", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--workload",
    "workload_option",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The workload file, in place of the argument.",
)
@click.option(
    "--target",
    metavar="URL",
    help="Server; its path picks the wire: /chat, /chat/batch, /v1/chat/completions (also without a path); ws:// for "
    "generated video. A kind that needs no server takes none.",
)
@click.option(
    "--against", metavar="URL", help="Chat: run each step on this server, too, in turn; compare both at the end."
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
@click.option("--cameras", metavar="N,N", help="Live streams: so many cameras, a step each.")
@click.option("--period-ms", type=float, help="Live streams: from one frame of a camera to its next.")
@click.option(
    "--drop",
    type=click.Choice(["newest", "busy", "none"]),
    default="newest",
    show_default=True,
    help="Frames that come while their camera's last is out: the newest waits, none waits, all wait.",
)
@click.option("--deadline-ms", type=float, help="Live streams: an answer is late after this.  [default: the period]")
@click.option("--sweep", is_flag=True, help="Find the largest rate that is kept up with, from --rate (or 1/s) on.")
@click.option("--sweep-target", default=0.95, show_default=True, help="Share of all due that must keep the SLO.")
@click.option(
    "--sweep-width", default=0.1, show_default=True, help="End where failing and holding rate are this close."
)
@click.option("--sweep-steps", default=16, show_default=True, type=click.IntRange(2), help="Steps of a sweep, at most.")
@click.option("--duration", type=float, metavar="SECONDS", help="Of each step.  [default: 30, unless --requests]")
@click.option("--requests", type=click.IntRange(1), help="At most this many in each step.")
@click.option("--warmup", default=0, show_default=True, type=click.IntRange(0), help="Requests before the first step.")
@click.option("--seed", type=int, help="Of arrivals and unique bodies; realtime: of the sessions too.  [default: 0]")
@click.option("--slo", metavar="LIMITS", help="What a good answer keeps: 'ttft_ms<500,e2e_ms<3000'; 'chunk_ms<750'.")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(1), help="Run all steps this many times.")
@click.option("--calibrate", is_flag=True, help="First measure this client against an engine of declared times (15 s).")
@click.option("--resume", is_flag=True, help="Go on with a run that was cut off; the options must be the same.")
@click.option("--allow-failures", is_flag=True, help="Exit status 0 although requests failed, if some succeeded.")
@click.option("--api-key", envvar="VISION_BENCH_API_KEY", help="Bearer token; also VISION_BENCH_API_KEY.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
def command(as_json: bool, allow_failures: bool, calibrate: bool, against: str | None, **flags: Any) -> int:
    """Put WORKLOAD's requests to a server under a stated load and measure each one.

    Requests leave when they are due, whatever is still out. Records are written as they come to OUT, with a summary
    that says what it cannot say, and report.html. docs/methodology.md tells how to read it.

    With --against, OUT holds a run folder for each server, a and b, and their comparison.

    Exit status: 0 all succeeded; 2 a bad file or option; 3 some failed; 4 nothing could be done; 130 interrupted.
    """
    from vision_bench.bench.against import run_pair_to_end
    from vision_bench.bench.run import run_to_end
    from vision_bench.cli.run_progress import progress
    from vision_bench.errors import ConnectFailed

    options = _options(flags)
    try:
        with progress() as on_status:
            calibration = _calibration() if calibrate else None
            if against is None:
                summaries = [run_to_end(options, on_status=on_status, calibrate=calibration)]
            else:
                summaries = [*run_pair_to_end(options, against, on_status=on_status, calibrate=calibration)]
    except ConnectFailed as problem:  # nothing was written
        click.echo(f"error: {problem}", err=True)
        return NOTHING_DONE
    show = _show_run if against is None else _show_pair
    show(options, summaries, as_json)
    counts = [step["requests"] for summary in summaries for step in summary["steps"]]
    if not any(count["ok"] for count in counts):
        return NOTHING_DONE
    return SOME_FAILED if any(count["failed"] for count in counts) and not allow_failures else ALL_OK


def _show_run(options: RunOptions, summaries: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Print and draw one run."""
    import json
    from datetime import datetime

    from vision_bench.bench.workload import media_path
    from vision_bench.report.run_page import write_run_page
    from vision_bench.report.run_table import print_run

    (summary,) = summaries
    if as_json:
        click.echo(json.dumps(summary, allow_nan=False))
    else:
        print_run(summary, options.out)
    write_run_page(options.out, summary, made_at=datetime.now().astimezone(), clips=media_path(options.workload))


def _show_pair(options: RunOptions, summaries: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Draw both runs, compare them, print and draw that."""
    import json
    from datetime import datetime

    from vision_bench.bench.against import arm_folders
    from vision_bench.bench.compare import CompareOptions, compare
    from vision_bench.bench.rundir import write_json
    from vision_bench.bench.workload import media_path
    from vision_bench.report.compare_page import write_compare_page
    from vision_bench.report.compare_table import print_comparison
    from vision_bench.report.run_page import write_run_page

    made_at, clips = datetime.now().astimezone(), media_path(options.workload)
    folders = arm_folders(options.out)
    for folder, summary in zip(folders, summaries, strict=True):
        write_run_page(folder, summary, made_at=made_at, clips=clips)
    found = compare(CompareOptions(*folders))
    write_json(options.out / "comparison.json", found)
    write_compare_page(options.out / "comparison.html", found, made_at=made_at)
    if as_json:
        click.echo(json.dumps(found, allow_nan=False))
    else:
        print_comparison(found)
        click.echo(f"Run folders: {folders[0]}, {folders[1]}; page: {options.out / 'comparison.html'}")


def _calibration() -> Any:
    from vision_bench.bench.calibrate import calibrate

    return calibrate


def _options(flags: dict[str, Any]) -> RunOptions:
    from vision_bench.bench.arrivals import parse_process
    from vision_bench.bench.plan import LoadPlan
    from vision_bench.bench.run import RunOptions, load_trace
    from vision_bench.bench.sweep import Sweep

    arrivals = parse_process(flags["arrivals"])
    plan = LoadPlan(
        rates=_numbers("--rate", flags["rate"], float),
        concurrency=_numbers("--concurrency", flags["concurrency"], int),
        arrivals=arrivals,
        trace=None if arrivals.file is None else load_trace(Path(arrivals.file)),
        duration_seconds=flags["duration"],
        max_requests=flags["requests"],
        seed=flags["seed"] or 0,
        repeat=flags["repeat"],
        cameras=_numbers("--cameras", flags["cameras"], int),
        period_ms=flags["period_ms"],
        drop=flags["drop"],
        deadline_ms=flags["deadline_ms"],
    )
    return RunOptions(
        workload=_one_workload(flags["workload"], flags["workload_option"]),
        target=flags["target"],
        out=flags["out"],
        plan=plan,
        warm_up=flags["warmup"],
        slo=flags["slo"],
        api_key=flags["api_key"],
        is_resumed=flags["resume"],
        sweep=Sweep(target=flags["sweep_target"], width=flags["sweep_width"], max_steps=flags["sweep_steps"])
        if flags["sweep"]
        else None,
        given_seed=flags["seed"],
        own={str(option.name): flags[str(option.name)] for option in OWN},
    )


def _one_workload(argument: Path | None, option: Path | None) -> Path:
    if (argument is None) == (option is None):
        raise click.UsageError("name one workload file, as the argument or with --workload")
    return argument or option or Path()


def _numbers(name: str, text: str | None, kind: Any) -> list[Any]:
    try:
        return [] if text is None else [kind(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{name} wants numbers joined by commas, such as 1,2,5, not {text!r}") from None
