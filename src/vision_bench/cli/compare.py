"""``vision-bench compare``: two runs of one load, and whether they differ."""

from __future__ import annotations

from pathlib import Path

import click

DONE, STOPPED = 0, 5


@click.command()
@click.argument("a", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("b", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--margin", default=0.05, show_default=True, help="Times this close, as a share, are EQUIVALENT.")
@click.option("--metric", "metrics", multiple=True, help="A number to compare; repeatable.  [default: the headlines]")
@click.option("--fail-on", metavar="WHAT,WHAT", help="Exit status 5 on any of slower, inconclusive, less-correct.")
@click.option("--force", is_flag=True, help="Compare although the runs were given different things to do.")
@click.option("--resamples", type=click.IntRange(1), help="Of the bootstrap.  [default: as many as the tests need]")
@click.option("--seed", default=0, show_default=True, help="Of the bootstrap.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Draw a page, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    a: Path,
    b: Path,
    *,
    margin: float,
    metrics: tuple[str, ...],
    fail_on: str | None,
    force: bool,
    resamples: int | None,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> int:
    """Hold run B against run A, request by request where both sent the same.

    For p50, p90 and p99 of each number in each step: FASTER, SLOWER, EQUIVALENT within the margin, or INCONCLUSIVE.
    Runs that were given other workloads, schedules or payloads are refused. docs/methodology.md tells how it is done.

    Exit status: 0 done; 2 the runs cannot be compared; 5 --fail-on is met.
    """
    import json
    from datetime import datetime

    from vision_bench.bench.compare import HEADLINES, CompareOptions, compare, failed_gates
    from vision_bench.cli.console import bar
    from vision_bench.report.compare_page import write_compare_page
    from vision_bench.report.compare_table import print_comparison

    gates = [] if fail_on is None else [gate.strip() for gate in fail_on.split(",")]
    failed_gates(None, gates)
    options = CompareOptions(
        a, b, margin=margin, metrics=metrics or HEADLINES, resamples=resamples, seed=seed, is_forced=force
    )
    with bar("compare numbers") as step:
        found = compare(options, on_number=step)
    if out is not None:
        write_compare_page(out, found, made_at=datetime.now().astimezone())
    met = failed_gates(found, gates)
    if as_json:
        click.echo(json.dumps(found | {"failed_gates": met}, allow_nan=False))
    else:
        print_comparison(found)
    for gate in met:
        click.echo(f"--fail-on: {gate}", err=True)
    return STOPPED if met else DONE
