"""``vision-bench report``: draw a run or an analysis as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from datetime import datetime


@click.command()
@click.argument(
    "sources", type=click.Path(exists=True, path_type=Path), metavar="RUN [RUN...]", nargs=-1, required=True
)
@click.option("--overlay", is_flag=True, help="Several run folders on one page, laid over each other.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page.  [default: report.html beside the results; with --overlay, overlay.html beside the first run]",
)
@click.option(
    "--clips-dir",
    type=click.Path(exists=True, path_type=Path),
    help="Where the clips are: of a run for its pictures; of an analysis when they are not where the results say.",
)
@click.option("--no-media", is_flag=True, help="Leave pictures out.")
@click.option("--credit", "credits", multiple=True, help="A line that names the makers of what is shown; repeatable.")
@click.option("--title", help="The page's title.")
@click.option("--extra", "extras", multiple=True, metavar="NAME=FILE", help="A JSON file as a section; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(sources: tuple[Path, ...], *, overlay: bool, as_json: bool, **flags: Any) -> None:
    """Draw RUN as one HTML page that opens offline.

    RUN is a folder of `vision-bench run`: its summary.json and page are made again from its records alone; so are table
    and page of a folder of `vision-bench envelope`. Or it is a
    results.ndjson of `vision-bench analyze`, or the folder that holds one; api_check.json and batch_throughput.json of
    the experiments beside it become sections of the page.
    """
    from datetime import datetime

    from vision_bench.bench.rundir import STUDY, is_run_folder

    made_at = datetime.now().astimezone()
    if overlay or len(sources) > 1:
        found = _overlay(sources, overlay, flags, made_at)
    elif is_run_folder(sources[0]):
        found = _run(sources[0], flags, made_at)
    elif (sources[0] / STUDY).is_file():
        found = _study(sources[0], flags, made_at)
    else:
        found = _analysis(sources[0], flags, made_at)
    _say(found, as_json)


def _overlay(folders: tuple[Path, ...], is_asked: bool, flags: dict[str, Any], made_at: datetime) -> dict[str, Any]:
    if not is_asked:
        raise click.UsageError("several runs on one page: say --overlay; to test for a difference, use compare")
    if len(folders) < 2:
        raise click.UsageError("--overlay wants two run folders or more")
    _refuse(flags, ("clips_dir", "credits", "extras"), "--overlay")
    from vision_bench.report.overlay import write_overlay

    path = write_overlay(folders, made_at=made_at, out=flags["out"], title=flags["title"])
    return {"report": path, "runs": len(folders)}


def _run(folder: Path, flags: dict[str, Any], made_at: datetime) -> dict[str, Any]:
    _refuse(flags, ("credits", "extras"), "a run folder")
    from vision_bench.bench.summary import write_summary
    from vision_bench.cli.console import bar
    from vision_bench.report.run_page import write_run_page

    clips = None if flags["no_media"] else flags["clips_dir"]
    with bar("read records"):  # a minute for 100,000 requests of 64 events
        summary = write_summary(folder)
        path = write_run_page(folder, summary, made_at=made_at, out=flags["out"], title=flags["title"], clips=clips)
    return {"report": path, "steps": len(summary["steps"])}


def _study(folder: Path, flags: dict[str, Any], made_at: datetime) -> dict[str, Any]:
    _refuse(flags, ("credits", "extras", "clips_dir"), "an envelope study")
    from vision_bench.bench.envelope.study import remake_study
    from vision_bench.report.envelope import PAGE, render_study
    from vision_bench.report.shell import write_page

    study = remake_study(folder)
    path = flags["out"] or folder / PAGE
    write_page(path, render_study(study, made_at=made_at, title=flags["title"]))
    return {"report": path, "envelopes": len(study["rows"])}


def _refuse(flags: dict[str, Any], names: tuple[str, ...], where: str) -> None:
    options = {"credits": "--credit", "extras": "--extra", "clips_dir": "--clips-dir"}
    for name in names:
        if flags[name]:
            raise click.UsageError(f"{options[name]} means nothing to {where}; leave it out")


def _analysis(source: Path, flags: dict[str, Any], made_at: datetime) -> dict[str, Any]:
    from vision_bench.cli.console import bar
    from vision_bench.report.page import load_run, render
    from vision_bench.report.shell import write_page

    if flags["clips_dir"] is not None and not flags["clips_dir"].is_dir():
        raise click.BadParameter(f"{flags['clips_dir']} is a file; give a folder", param_hint="--clips-dir")
    run = load_run(source, extras=dict(_named_file(extra) for extra in flags["extras"]))
    target = flags["out"] or run.folder / "report.html"
    with bar("draw clips", len(run.results.lines)) as step:
        page = render(
            run,
            made_at=made_at,
            title=flags["title"],
            credits=flags["credits"],
            clips_dir=flags["clips_dir"],
            with_media=not flags["no_media"],
            on_card=step,
        )
    write_page(target, page)
    return {"report": target, "clips": len(run.results.lines)}


def _say(found: dict[str, Any], as_json: bool) -> None:
    """The page's path, what it holds, and its size."""
    import json

    from vision_bench.media.container import display_name

    path: Path = found.pop("report")
    if as_json:
        click.echo(json.dumps({"report": str(path), **found, "bytes": path.stat().st_size}))
    else:
        click.echo(f"{display_name(str(path))} ({', '.join(f'{count} {name}' for name, count in found.items())})")


def _named_file(extra: str) -> tuple[str, Path]:
    name, has_name, file = extra.partition("=")
    if not has_name or not name or not file:
        raise click.BadParameter(f"{extra!r} is not NAME=FILE", param_hint="--extra")
    return name, Path(file)
