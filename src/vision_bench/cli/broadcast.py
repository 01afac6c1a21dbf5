"""``vision-bench broadcast``: make labelled synthetic broadcasts and check cuts of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vision_bench.media.broadcast.genres import GENRES

if TYPE_CHECKING:
    from rich.progress import TaskID


@click.group()
def command() -> None:
    """Make a labelled synthetic broadcast, or check a clip cut from one."""


@command.command()
@click.option(
    "--genre",
    "genre_name",
    type=click.Choice([*GENRES, "all"]),
    required=True,
    help="Kind of programme; `all` makes the seven, each in its own folder below --out.",
)
@click.option("--seconds", type=float, required=True, help="Length of the programme after the lead.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder to write into.")
@click.option("--lead", "lead_seconds", type=float, default=0.0, show_default=True, help="Seconds of black in front.")
@click.option("--seed", type=int, default=7, show_default=True, help="Same seed, same labels.")
@click.option("--no-stamp", is_flag=True, help="Leave out the frame stamp, the flashes and the beeps.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def make(
    *, genre_name: str, seconds: float, out: Path, lead_seconds: float, seed: int, no_stamp: bool, as_json: bool
) -> None:
    """Write a genre's film and its labels into a folder."""
    from rich.console import Console
    from rich.progress import Progress

    from vision_bench.media.broadcast.make import make_broadcast

    made = []
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for genre in GENRES.values() if genre_name == "all" else [GENRES[genre_name]]:
            task = bar.add_task(f"Drawing {genre.name}", total=None)

            def show(done: int, total: int, task: TaskID = task) -> None:
                bar.update(task, completed=done, total=total)

            folder = out / genre.name if genre_name == "all" else out
            made.append(
                make_broadcast(
                    genre,
                    folder,
                    seconds=seconds,
                    lead_seconds=lead_seconds,
                    seed=seed,
                    stamp=not no_stamp,
                    progress=show,
                )
            )
    for warning in {warning: None for item in made for warning in item.warnings}:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        click.echo(json.dumps({"made": [item.as_json() for item in made]}, ensure_ascii=False))
        return
    for item in made:
        click.echo(f"{item.film}: {item.frames} frames, {item.size_bytes / 1e6:.2f} MB; labels in {item.labels}")


@command.command()
@click.argument("clip", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("labels", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--max-offset-ms", type=float, default=20.0, show_default=True, help="Largest A/V offset allowed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def check(*, clip: Path, labels: Path, max_offset_ms: float, as_json: bool) -> int:
    """Read a clip's frame stamps and A/V marks. A clip named like a window is held to that window's frames.

    Exit code 5 when frames are lost, repeated or foreign, or sound and picture are apart.
    """
    from vision_bench.media.broadcast.check import check_clip
    from vision_bench.media.broadcast.labels import read_labels

    result = check_clip(clip, read_labels(labels))
    faults = result.faults(max_offset_ms=max_offset_ms)
    if as_json:
        click.echo(json.dumps({**result.as_json(), "faults": faults}))
    else:
        click.echo(f"{clip}: frames {result.first_frame} to {result.last_frame}, {result.frames} in all")
        click.echo(f"A/V offsets: {', '.join(f'{ms:+.1f} ms' for ms in result.av_offsets_ms) or 'n/a (0 pairs)'}")
        for fault in faults:
            click.echo(f"fault: {fault}")
    return 5 if faults else 0


@command.command()
@click.argument("labels", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--fps", type=float, help="Frames a second that the model was given, where the lines do not say.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def score(*, labels: Path, results: Path, fps: float | None, as_json: bool) -> None:
    """Hold an analysis of a broadcast's clips (`vision-bench analyze`) to the broadcast's labels."""
    from vision_bench.answers.scorecard import score_results
    from vision_bench.errors import InvalidRequest
    from vision_bench.media.broadcast.labels import read_labels
    from vision_bench.wire.ndjson import read_lines

    try:
        lines = list(read_lines([results.read_bytes()]))
    except ValueError as problem:
        raise InvalidRequest(f"{results}: {problem}; give the results.ndjson of `vision-bench analyze`") from problem
    card = score_results(read_labels(labels), lines, fps=fps)
    if as_json:
        click.echo(json.dumps(card.as_json()))
        return
    click.echo(f"{card.answered} of {card.windows} windows answered; the others count as wrong")
    for row in card.rows:
        shown = "n/a" if row.mean is None else f"{row.mean:.2f}"
        click.echo(f"{row.fact:28} {row.method:9} {shown:>5}  ({row.count} windows)")
