"""``vision-bench broadcast``: make labelled synthetic broadcasts and check cuts of them."""

from __future__ import annotations

import json
from pathlib import Path

import click

GENRE_NAMES = ("news", "docu", "drama", "hist_drama", "entertain", "baseball", "esports")


@click.group()
def command() -> None:
    """Make a labelled synthetic broadcast, or check a clip cut from one."""


@command.command()
@click.option("--genre", "genre_name", type=click.Choice(GENRE_NAMES), required=True, help="Kind of programme.")
@click.option("--seconds", type=float, required=True, help="Length of the programme after the lead.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder to write into.")
@click.option("--lead", "lead_seconds", type=float, default=0.0, show_default=True, help="Seconds of black in front.")
@click.option("--seed", type=int, default=7, show_default=True, help="Same seed, same labels.")
@click.option("--no-stamp", is_flag=True, help="Leave out the frame stamp, the flashes and the beeps.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def make(
    *, genre_name: str, seconds: float, out: Path, lead_seconds: float, seed: int, no_stamp: bool, as_json: bool
) -> None:
    """Write the genre's film and its labels into a folder."""
    from rich.console import Console
    from rich.progress import Progress

    from vision_bench.media.broadcast.genres import genre_named
    from vision_bench.media.broadcast.make import make_broadcast

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"Drawing {genre_name}", total=None)
        made = make_broadcast(
            genre_named(genre_name),
            out,
            seconds=seconds,
            lead_seconds=lead_seconds,
            seed=seed,
            stamp=not no_stamp,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    for warning in made.warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        click.echo(json.dumps(made.as_json(), ensure_ascii=False))
    else:
        click.echo(f"{made.film}: {made.frames} frames, {made.size_bytes / 1e6:.2f} MB; labels in {made.labels}")
