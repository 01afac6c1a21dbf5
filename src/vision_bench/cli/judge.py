"""``vision-bench judge``: let a model decide what no scorer can."""

from __future__ import annotations

from pathlib import Path

import click

DONE, SOME_FAILED, NOTHING_DONE = 0, 3, 4


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="RUN")
@click.option("--target", required=True, metavar="URL", help="The judge's server; single chats.")
@click.option("--model", required=True, metavar="NAME", help="The judge.")
@click.option("--concurrency", default=4, show_default=True, type=click.IntRange(1), help="Answers at once.")
@click.option("--api-key", envvar="VISION_BENCH_API_KEY", help="Bearer token; also VISION_BENCH_API_KEY.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(*, run: Path, target: str, model: str, concurrency: int, api_key: str | None, as_json: bool) -> int:
    """Ask a model about the answers in RUN whose labels have the scorer `judge`, and make RUN's summary anew.

    Answers that have a verdict are not asked again.

    Exit status: 0 all are judged; 2 nothing in RUN wants a judge; 3 some have no verdict; 4 none has.
    """
    import json

    from vision_bench.bench.judging import JudgeOptions, judge_run
    from vision_bench.cli.console import bar
    from vision_bench.errors import ConnectFailed

    try:
        with bar("judge answers") as step:
            done = judge_run(run, JudgeOptions(target, model, concurrency, api_key), on_answer=step)
    except ConnectFailed as problem:  # nothing was written
        click.echo(f"error: {problem}", err=True)
        return NOTHING_DONE
    if as_json:
        click.echo(json.dumps({"judged": done.judged, "right": done.right, "failed": done.failed, "model": model}))
    else:
        click.echo(f"{done.judged} answers judged, {done.right} right; {done.failed} without a verdict")
    if done.failed:
        return SOME_FAILED if done.judged else NOTHING_DONE
    return DONE
