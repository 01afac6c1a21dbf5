"""``vision-bench equivalence``: whether our patches are the stock processor's, bit for bit."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("checkpoint", type=click.Path(exists=True, path_type=Path))
@click.option("--images", is_flag=True, help="The image processor instead of the video processor.")
@click.option(
    "--against",
    type=click.Choice(["stock", "pil", "reference"]),
    default="stock",
    show_default=True,
    help="The installed transformers, its PIL backend (images alone), or our own oracle.",
)
@click.option("--cases", "count", type=click.IntRange(min=1), default=24, show_default=True, help="Inputs to compare.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of sizes and pixels.")
@click.option(
    "--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads a call, on our side."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(*, checkpoint: Path, images: bool, against: str, count: int, seed: int, threads: int, as_json: bool) -> int:
    """Compare our preprocessor with the stock one and print the level that they share.

    CHECKPOINT is a folder with the processor's JSON files, or one of them: a Qwen-VL's or Gemma 4's. Nothing of a model
    is loaded.

    Exit status: 0 every byte is equal; 2 CHECKPOINT cannot be used; 4 transformers is not installed;
    5 something differs.
    """
    import json
    import sys
    from collections.abc import Iterator
    from dataclasses import asdict

    from vision_bench.cli.console import bar
    from vision_bench.preprocess.equivalence import check, sample_clips, sample_images
    from vision_bench.preprocess.pairs import image_pair, video_pair
    from vision_bench.preprocess.reference import Frames

    pair = (image_pair if images else video_pair)(checkpoint, against, threads)
    inputs = (sample_images if images else sample_clips)(count, seed)
    with bar("compare", count) as step:

        def counted() -> Iterator[Frames]:
            for frames in inputs:
                yield frames
                step()

        found = check(pair.ours, pair.theirs, pair.spec, counted(), pair.against)
    if as_json:
        json.dump(asdict(found), sys.stdout)
        click.echo()
    else:
        for size, one in found.cases.items():
            click.echo(f"{size:>18}  {one.text}")
        click.echo(f"{found.level} against {found.against}")
    return 0 if found.level == "E0" else 5
