"""Discard what an evaluation left behind: media under the data folder, answers and reports under the runs folder.

Nothing outside those two folders is ever touched: links are removed, never followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vision_bench.errors import InvalidRequest

DATA_PARTS = ("raw", "clips", "blackout")
"""Folders of the data folder that hold footage; anything else there is somebody's own and stays."""

SECONDS_A_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Part:
    """What goes from one folder, and what could not be removed, with the reason."""

    folder: Path
    files: int
    size_bytes: int
    problems: tuple[str, ...] = ()


def purge(
    *,
    data_dir: Path,
    runs_dir: Path,
    now_seconds: float,
    older_than_days: float | None = None,
    dry_run: bool = False,
) -> list[Part]:
    """Remove raw, clips, blackout and runs; say what went.

    Args:
        now_seconds: Unix time that ages are counted from.
        older_than_days: leave files that were written since; None removes all.
        dry_run: count, and remove nothing.

    Returns:
        A part a folder that exists.

    Raises:
        InvalidRequest: a folder is a root, a home, a checkout, this folder or one above it.
    """
    before = None if older_than_days is None else now_seconds - older_than_days * SECONDS_A_DAY
    folders = [data_dir / part for part in DATA_PARTS] + [runs_dir]
    for folder in (data_dir, runs_dir):
        _refuse_dangerous(folder)
    return [_purge_folder(folder, before, dry_run) for folder in folders if _is_real_folder(folder)]


def _refuse_dangerous(folder: Path) -> None:
    whole = folder.resolve()
    here = Path.cwd().resolve()
    if (whole / ".git").exists() or whole in (Path(whole.anchor), Path.home().resolve(), here) or whole in here.parents:
        raise InvalidRequest(f"{folder} is {whole}: too much to discard; name a data or runs folder of this project")


def _is_real_folder(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink()


def _purge_folder(folder: Path, before: float | None, dry_run: bool) -> Part:
    files = size_bytes = 0
    problems: list[str] = []
    for path, status in _files(folder):
        if before is not None and status.st_mtime >= before:
            continue
        try:
            if not dry_run:
                path.unlink()
        except OSError as problem:
            problems.append(f"{path}: {problem.strerror or problem}")
            continue
        files += 1
        size_bytes += status.st_size if stat.S_ISREG(status.st_mode) else 0
    if not dry_run:
        _remove_empty_folders(folder)
    return Part(folder, files, size_bytes, tuple(problems))


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Everything under ``folder`` that is not a folder, links themselves included."""
    for parent, folders, names in os.walk(folder, followlinks=False):
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        for name in sorted(names + links):
            path = Path(parent, name)
            yield path, path.lstat()


def _remove_empty_folders(folder: Path) -> None:
    for parent, _, _ in os.walk(folder, topdown=False, followlinks=False):
        try:
            Path(parent).rmdir()
        except OSError:  # something is still in it
            continue
