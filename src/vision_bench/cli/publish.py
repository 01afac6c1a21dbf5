"""``vision-bench publish``: a film as a camera."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("publish")
@click.argument("film", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--gateway", default="http://127.0.0.1:8001", show_default=True, help="A gateway with LIVE_ENABLED.")
@click.option("--api-key", envvar="VISION_BENCH_API_KEY", help="Bearer token; also VISION_BENCH_API_KEY.")
@click.option("--max-fps", type=click.FloatRange(min=0, min_open=True), help="Leave pictures out above this rate.")
@click.option("--rounds", default=1, show_default=True, type=click.IntRange(0), help="0 shows it until interrupted.")
@click.option("--keep", is_flag=True, help="Leave the stream to its lease instead of deleting it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    *, film: Path, gateway: str, api_key: str | None, max_fps: float | None, rounds: int, keep: bool, as_json: bool
) -> int:
    """Send the pictures of FILM into a new live stream, at the film's own pace.

    The stream's id is told first, so that questions can be asked while it plays.

    Exit status: 0 every picture was stored; 3 some were dropped or skipped, or the stream broke off; 4 no stream was
    made: the gateway is not there, or refuses (a wrong key, too many streams).
    """
    import asyncio
    import dataclasses
    import json

    from vision_bench.cli.console import bar
    from vision_bench.client.live_film import Published
    from vision_bench.client.publish import publish
    from vision_bench.errors import UpstreamError

    is_made = False

    def tell(stream_id: str) -> None:
        nonlocal is_made
        is_made = True
        click.echo(f"stream {stream_id}", err=as_json)

    with bar("pictures") as step:

        def count(so_far: Published) -> None:
            step(advance=1, note=f"{so_far.stored} stored, {so_far.dropped.total()} dropped, {so_far.skipped} skipped")

        showing = publish(
            film,
            gateway=gateway,
            api_key=api_key,
            max_fps=max_fps,
            rounds=rounds or None,
            keep=keep,
            on_stream=tell,
            on_picture=count,
        )
        try:
            published = asyncio.run(showing)
        except UpstreamError as problem:
            if is_made:
                raise
            click.echo(f"error: {problem}", err=True)
            return 4
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(published)))
    else:
        reasons = "".join(f", {count} {word}" for word, count in sorted(published.dropped.items()))
        click.echo(f"{published.sent} sent, {published.stored} stored, {published.skipped} skipped{reasons}")
    return 0 if published.stored == published.sent and not published.skipped else 3
