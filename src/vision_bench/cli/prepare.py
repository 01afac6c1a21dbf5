"""``vision-bench prepare``: cut sources into clips and black copies, and print the final table."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vision_bench.media.layout import CATEGORIES, TARGETS, raw_path

if TYPE_CHECKING:
    from vision_bench.media.scene import CutSettings, Prepared

SHORT, NOTHING = 3, 4


def seconds(text: str) -> Fraction:
    """A time such as ``600`` or ``2.5``; click words the error."""
    try:
        return Fraction(text)
    except ZeroDivisionError as problem:
        raise ValueError(text) from problem


def seconds_or_end(text: str) -> Fraction | None:
    """The same, or ``end`` for the end of the source."""
    return None if text == "end" else seconds(text)


@click.command()
@click.argument("src", required=False, type=click.Path(path_type=Path))
@click.option("--category", metavar="NAME", help=f"One of: {', '.join(sorted(CATEGORIES))}.")
@click.option("--all", "every", is_flag=True, help="Every target that lies in data/raw; a missing one is skipped.")
@click.option(
    "--start", type=seconds, metavar="SECONDS", default="600", show_default=True, help="Seconds from the first frame."
)
@click.option("--end", type=seconds_or_end, default="1200", show_default=True, help="Seconds, or `end` of the source.")
@click.option("--length", type=seconds, default="6", show_default=True, help="Seconds a clip.")
@click.option("--bitrate", default="1500k", show_default=True, help="Of the picture.")
@click.option(
    "--encoder",
    default="auto",
    show_default=True,
    metavar="auto|libopenh264|libx264",
    help="auto: libopenh264 where the extra `ffmpeg` is installed, else libx264.",
)
@click.option("--jobs", type=click.IntRange(1), help="Clips cut at once.  [default: one a processor]")
@click.option("--audio-index", type=click.IntRange(0), help="Sound track, from 0.  [default: the default one]")
@click.option(
    "--min-remainder",
    type=seconds,
    default="0.5",
    show_default=True,
    help="A shorter last piece is listed in clips.json and not cut.",
)
@click.option("--no-blackout", is_flag=True, help="Make no black copy of the first clip.")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="DATA_DIR",
    default=Path("data"),
    show_default=True,
    help="Where clips go; also DATA_DIR.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(*, src: Path | None, category: str | None, every: bool, as_json: bool, **flags: Any) -> int:
    """Cut SRC into clips: data/clips/CATEGORY/NAME/0001_0600-0606.mp4 and so on, with clips.json beside them.

    A clip is H.264 and AAC and holds exactly the frames with start <= time < end, counted from the source's first
    frame. SRC is read where it lies and never changed or copied. A second run makes only what is missing.

    Exit status: 0 all clips are there; 2 a bad file or option; 3 some are missing, because the source is too short or
    damaged or a target has no source; 4 nothing could be done.
    """
    from vision_bench.cli.prepare_output import as_object, print_final_table, print_outcome
    from vision_bench.errors import VisionBenchError
    from vision_bench.media.container import display_name

    if every == (src is not None) or (src is not None and category is None):
        raise click.UsageError("give SRC with --category, or --all")
    data_dir: Path = flags.pop("data_dir")
    settings = _settings(flags)
    if src is not None and category is not None:
        done = [_prepare_one(src, category, data_dir, settings)]
        missing: list[str] = []
    else:
        done, missing = [], []
        for name, file_name in TARGETS:
            source = raw_path(data_dir, name, file_name)
            if not source.is_file():
                click.echo(f"! source not found, skipping: {display_name(str(source))}", err=True)
                missing.append(f"{name}/{file_name}")
                continue
            try:
                done.append(_prepare_one(source, name, data_dir, settings))
            except VisionBenchError as problem:
                click.echo(f"! {name}: {problem}", err=True)
                missing.append(f"{name}/{file_name}")
    for prepared in done:
        print_outcome(prepared)
    if as_json:
        click.echo(json.dumps(as_object(done, missing)))
    elif done:
        print_final_table(done)
    return _exit_code(done, missing)


def _settings(flags: dict[str, Any]) -> CutSettings:
    from vision_bench.media.encoders import parse_bitrate
    from vision_bench.media.scene import CutSettings

    return CutSettings(
        start=flags["start"],
        end=flags["end"],
        length=flags["length"],
        bitrate=parse_bitrate(flags["bitrate"]),
        encoder=flags["encoder"],
        jobs=flags["jobs"],
        audio_index=flags["audio_index"],
        min_remainder=flags["min_remainder"],
        with_blackout=not flags["no_blackout"],
    )


def _prepare_one(source: Path, category: str, data_dir: Path, settings: CutSettings) -> Prepared:
    from rich.markup import escape

    from vision_bench.cli.console import bar
    from vision_bench.media.clips import prepare_source
    from vision_bench.media.container import display_name

    with bar(escape(f"cut {display_name(source)}")) as step:
        return prepare_source(
            source,
            category=category,
            data_dir=data_dir,
            settings=settings,
            progress=lambda ready, wanted: step(0, completed=ready, total=wanted),
        )


def _exit_code(done: list[Prepared], missing: list[str]) -> int:
    if not done:
        return NOTHING
    return SHORT if missing or not all(prepared.is_complete for prepared in done) else 0
