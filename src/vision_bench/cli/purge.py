"""``vision-bench purge``: discard media, runs and reports."""

from __future__ import annotations

from pathlib import Path

import click

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.option("--older-than", type=float, metavar="DAYS", help="Keep what was written since.")
@click.option("--dry-run", is_flag=True, help="Only list.")
@click.option("--yes", "is_sure", is_flag=True, help="Also empty folders that hold nothing this project writes.")
@click.option(
    "--data-dir", type=FOLDER, envvar="DATA_DIR", default=Path("data"), show_default=True, help="Also DATA_DIR."
)
@click.option("--runs-dir", type=FOLDER, default=Path("runs"), show_default=True, help="Results and reports.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    *, older_than: float | None, dry_run: bool, is_sure: bool, data_dir: Path, runs_dir: Path, as_json: bool
) -> int:
    """Discard raw, clips, blackout, runs and reports, and list what went.

    Links are removed, not followed. Other folders of the data folder stay. Folders of the system, and a checkout's
    other than its runs and data, are refused.

    Exit status: 0 done; 3 some could not be removed, or a folder is a link and was left alone.
    """
    import json
    import time

    from vision_bench.cli.console import print_table, shown_bytes
    from vision_bench.client.purge import purge

    parts = purge(
        data_dir=data_dir,
        runs_dir=runs_dir,
        now_seconds=time.time(),
        older_than_days=older_than,
        dry_run=dry_run,
        is_sure=is_sure,
    )
    problems = [problem for part in parts for problem in part.problems]
    files, size_bytes = sum(part.files for part in parts), sum(part.size_bytes for part in parts)
    for problem in problems:
        click.echo(problem, err=True)
    if as_json:
        listed = [{"folder": str(part.folder), "files": part.files, "bytes": part.size_bytes} for part in parts]
        whole = {"dry_run": dry_run, "files": files, "bytes": size_bytes, "folders": listed, "problems": problems}
        click.echo(json.dumps(whole))
    else:
        rows = [(str(part.folder), f"{part.files} files, {shown_bytes(part.size_bytes)}") for part in parts]
        rows.append(("total", f"{files} files, {shown_bytes(size_bytes)}"))
        print_table("Would be discarded" if dry_run else "Discarded", rows)
    return 3 if problems else 0
