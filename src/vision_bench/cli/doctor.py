"""``vision-bench doctor``: check encoders, fonts, extras and the server."""

from __future__ import annotations

import click


@click.command()
@click.option("--target", metavar="URL", help="A gateway, or a model server; its flags are tried with text prompts.")
@click.option("--model", default="qwen", show_default=True, help="Served model name that the target should know.")
@click.option("--api-key", envvar="VISION_BENCH_API_KEY", help="Bearer token; also VISION_BENCH_API_KEY.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(*, target: str | None, model: str, api_key: str | None, as_json: bool) -> int:
    """Say what this machine, and the server at URL, can and cannot do; each gap with its remedy.

    Exit status: 0 nothing stands in the way; 2 URL is no address; 3 something stands in the way.
    """
    import asyncio
    import json
    import sys
    from dataclasses import asdict

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from vision_bench.cli.console import bar
    from vision_bench.client.doctor import check_machine, check_target
    from vision_bench.media.container import display_name

    def cell(text: str | None) -> str:
        """What a server said may hold anything; a terminal does not take everything."""
        return escape(display_name(text or ""))

    with bar("look around"):
        checks = check_machine()
        if target is not None:
            checks += asyncio.run(check_target(target, model=model, api_key=api_key))
    is_healthy = all(check.state != "fail" for check in checks)
    if as_json:
        click.echo(json.dumps({"healthy": is_healthy, "checks": [asdict(check) for check in checks]}))
    else:
        colours = {"ok": "green", "missing": "yellow", "note": "cyan", "fail": "red"}
        table = Table(show_edge=False)
        for title in ("", "Check", "Found", "Remedy"):
            table.add_column(title, overflow="fold")
        for check in checks:
            state = f"[{colours[check.state]}]{check.state}[/]"
            table.add_row(state, cell(check.name), cell(check.detail), cell(check.remedy))
        Console(width=None if sys.stdout.isatty() else 120).print(table)
    return 0 if is_healthy else 3
