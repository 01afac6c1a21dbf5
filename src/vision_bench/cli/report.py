"""``vision-bench report``: draw an analysis as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("source", type=click.Path(exists=True, path_type=Path), metavar="RUN")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page.  [default: report.html beside the results]",
)
@click.option(
    "--clips-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the clips are, when they are no longer where the results say.",
)
@click.option("--no-media", is_flag=True, help="Leave pictures out.")
@click.option("--credit", "credits", multiple=True, help="A line that names the makers of what is shown; repeatable.")
@click.option("--title", help="The page's title.")
@click.option("--extra", "extras", multiple=True, metavar="NAME=FILE", help="A JSON file as a section; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    source: Path,
    *,
    out: Path | None,
    clips_dir: Path | None,
    no_media: bool,
    credits: tuple[str, ...],
    title: str | None,
    extras: tuple[str, ...],
    as_json: bool,
) -> None:
    """Draw RUN, a results.ndjson or the folder that holds one, as one HTML page that opens offline.

    In a folder, api_check.json and batch_throughput.json of the experiments become sections of the page.
    """
    import json
    from datetime import datetime

    from vision_bench.cli.console import bar
    from vision_bench.media.container import display_name
    from vision_bench.report.page import load_run, render
    from vision_bench.report.shell import write_page

    run = load_run(source, extras=dict(_named_file(extra) for extra in extras))
    target = out or run.folder / "report.html"
    with bar("draw clips", len(run.results.lines)) as step:
        page = render(
            run,
            made_at=datetime.now().astimezone(),
            title=title,
            credits=credits,
            clips_dir=clips_dir,
            with_media=not no_media,
            on_card=step,
        )
    write_page(target, page)
    if as_json:
        click.echo(
            json.dumps(
                {"report": str(target), "clips": len(run.results.lines), "bytes": len(page.encode(errors="replace"))}
            )
        )
    else:
        click.echo(f"{display_name(str(target))} ({len(run.results.lines)} clips)")


def _named_file(extra: str) -> tuple[str, Path]:
    name, has_name, file = extra.partition("=")
    if not has_name or not name or not file:
        raise click.BadParameter(f"{extra!r} is not NAME=FILE", param_hint="--extra")
    return name, Path(file)
