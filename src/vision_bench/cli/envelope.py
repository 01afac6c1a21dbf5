"""``vision-bench envelope``: the smallest input that is accurate enough."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from vision_bench.bench.envelope.study import StudyOptions

DONE, SOME_FAILED, NOTHING_DONE, REFUSED = 0, 3, 4, 5
_AUDIO = {"on": True, "off": False}


@click.command()
@click.argument("workload", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", required=True, metavar="URL", help="Server, as for `run`.")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder: new or empty.")
@click.option("--threshold", required=True, type=float, metavar="SHARE", help="Share of facts that must be right.")
@click.option("--fps", metavar="N,N", help="Frames a second.")
@click.option("--num-frames", metavar="N,N", help="Frames of a clip, in the place of --fps.")
@click.option("--height", metavar="N,N", help="Lines; clips are scaled down before they are sent, never up.")
@click.option("--max-pixels", metavar="N,N", help="Bound of a frame that the server keeps.")
@click.option("--seconds", metavar="N,N", help="Only the beginning of each clip.")
@click.option("--audio", metavar="on,off", help="With and without sound.")
@click.option("--model", metavar="NAME,NAME", help="Served models.")
@click.option("--sure", is_flag=True, help="The lower end of the 95 % interval must reach the threshold.")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(1), help="Ask each clip this many times.")
@click.option("--concurrency", default=1, show_default=True, type=click.IntRange(1), help="Requests at once.")
@click.option("--warmup", default=1, show_default=True, type=click.IntRange(0), help="Requests before each envelope.")
@click.option("--no-controls", is_flag=True, help="Do not ask again with a black picture and without sound.")
@click.option(
    "--keep",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the choice is kept.  [default: WORKLOAD's name with .envelope.json, beside it]",
)
@click.option("--resume", is_flag=True, help="Go on with a study that was cut off; the options must be the same.")
@click.option("--api-key", envvar="VISION_BENCH_API_KEY", help="Bearer token; also VISION_BENCH_API_KEY.")
@click.option("--json", "as_json", is_flag=True, help="Print the study as one JSON object.")
def command(as_json: bool, **flags: Any) -> int:
    """Ask WORKLOAD's labelled clips in every envelope, and choose the smallest that is accurate enough.

    Each envelope is a run folder under OUT; table, picture and choice follow from them. `run` uses the choice to say
    whether a workload sends what was chosen, and calls it STALE when workload, prompt or served model changed.

    Exit status: 0 chosen; 2 a bad file or option; 3 some requests failed; 4 nothing could be done; 5 no envelope
    reaches the threshold, or a control failed; 130 interrupted.
    """
    import json
    from datetime import datetime

    from vision_bench.bench.envelope.study import run_study
    from vision_bench.cli.run_progress import progress
    from vision_bench.errors import ConnectFailed
    from vision_bench.report.envelope import PAGE, print_study, render_study
    from vision_bench.report.shell import write_page

    options = _options(flags)
    try:
        with progress() as on_status:
            study = run_study(options, on_point=_tell, on_status=on_status)
    except ConnectFailed as problem:
        click.echo(f"error: {problem}", err=True)
        return NOTHING_DONE
    write_page(options.out / PAGE, render_study(study, made_at=datetime.now().astimezone()))
    if as_json:
        click.echo(json.dumps(study, allow_nan=False))
    else:
        print_study(study, options.out)
    if not any(row["requests"]["ok"] for row in study["rows"]):
        return NOTHING_DONE
    if any(row["requests"]["failed"] for row in study["rows"]):
        return SOME_FAILED
    has_failed_control = any(control["verdict"] == "FAIL" for control in study["controls"])
    return DONE if study["choice"]["chosen"] and not has_failed_control else REFUSED


def _tell(name: str, number: int, total: int) -> None:
    click.echo(f"[{number}/{total}] {name}", err=True)


def _options(flags: dict[str, Any]) -> StudyOptions:
    from vision_bench.bench.envelope.study import StudyOptions

    axes: dict[str, list[Any]] = {
        "model": _values("--model", flags["model"], str),
        "height": _values("--height", flags["height"], int),
        "fps": _values("--fps", flags["fps"], float),
        "num_frames": _values("--num-frames", flags["num_frames"], int),
        "seconds": _values("--seconds", flags["seconds"], float),
        "max_pixels": _values("--max-pixels", flags["max_pixels"], int),
        "use_audio": _values("--audio", flags["audio"], _AUDIO.__getitem__),
    }
    return StudyOptions(
        workload=flags["workload"],
        target=flags["target"],
        out=flags["out"],
        axes=axes,
        threshold=flags["threshold"],
        is_sure=flags["sure"],
        rounds=flags["repeat"],
        concurrency=flags["concurrency"],
        warm_up=flags["warmup"],
        controls=not flags["no_controls"],
        keep=flags["keep"],
        api_key=flags["api_key"],
        is_resumed=flags["resume"],
    )


def _values(name: str, text: str | None, kind: Any) -> list[Any]:
    try:
        return [] if text is None else [kind(part.strip()) for part in text.split(",")]
    except (ValueError, KeyError):
        wanted = "on,off" if name == "--audio" else "values joined by commas, such as 1,2,4"
        raise click.UsageError(f"{name} wants {wanted}, not {text!r}") from None
