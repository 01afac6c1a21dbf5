"""Discard what an evaluation left behind: media under the data folder, answers and reports under the runs folder.

Nothing outside those two folders is ever touched: links are removed, never followed.

A mistyped folder must cost nothing, so before anything goes, each of the two is looked at:

- a folder of the system, a home, a checkout, this folder and all above it are refused;
- so is a runs folder inside a checkout, unless it is (in) runs or data at its top, or runs of this folder;
- one that holds files, but none that this project writes, is refused unless ``is_sure``.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vision_bench.errors import InvalidRequest
from vision_bench.media.layout import ADHOC, CATEGORIES

DATA_PARTS = ("raw", "clips", "blackout")
"""Folders of the data folder that hold footage; anything else there is somebody's own and stays."""

RUNS_MARKS = ("*.ndjson", "report.html", "api_check.json", "batch_throughput.json", "gateway-*.log")
"""Files by which a runs folder is known, wherever in it they lie."""

SYSTEM_FOLDERS = frozenset({"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "sbin", "sys", "usr"})
"""Folders of the root that belong to the system, with everything in them."""

SHARED_FOLDERS = frozenset({"home", "media", "mnt", "opt", "root", "run", "srv", "tmp", "var"})
"""Folders of the root that are everybody's, though what lies in them may be ours."""

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
    is_sure: bool = False,
) -> list[Part]:
    """Remove raw, clips, blackout and runs; say what went.

    Args:
        now_seconds: Unix time that ages are counted from.
        older_than_days: leave files that were written since; None removes all.
        dry_run: count, and remove nothing.
        is_sure: remove from folders that hold nothing of ours, too.

    Returns:
        A part a folder that exists. One that is a link, or no folder, is a part with a problem: it was left alone.

    Raises:
        InvalidRequest: a folder is not to be emptied, see above, or the age is no finite number of days from 0 up.
    """
    if older_than_days is not None and not (math.isfinite(older_than_days) and older_than_days >= 0):
        raise InvalidRequest(f"an age of {older_than_days:g} days: give a finite number from 0 up")
    for folder in (data_dir, runs_dir):
        _refuse_dangerous(folder)
    _refuse_sources(runs_dir)
    parts = [data_dir / part for part in DATA_PARTS]
    if not (dry_run or is_sure):
        _refuse_unknown(data_dir, parts, _is_category)
        _refuse_unknown(runs_dir, [runs_dir], _is_result)
    before = None if older_than_days is None else now_seconds - older_than_days * SECONDS_A_DAY
    return [_purge_folder(folder, before, dry_run) for folder in (*parts, runs_dir) if os.path.lexists(folder)]


def _refuse_dangerous(folder: Path) -> None:
    whole = folder.resolve()
    here = Path.cwd().resolve()
    top = whole.parts[1] if len(whole.parts) > 1 else ""
    is_system = top in SYSTEM_FOLDERS or (whole == Path(whole.anchor, top) and top in SHARED_FOLDERS | {""})
    if is_system or (whole / ".git").exists() or whole in (Path.home().resolve(), here) or whole in here.parents:
        raise InvalidRequest(f"{folder} is {whole}: too much to discard; name a data or runs folder of this project")


def _refuse_sources(runs_dir: Path) -> None:
    whole = runs_dir.resolve()
    checkout = next((parent for parent in whole.parents if (parent / ".git").exists()), None)
    if checkout is None:
        return
    may_go = {checkout / "runs", checkout / "data", Path.cwd().resolve() / "runs"}
    if not may_go & {whole, *whole.parents}:
        raise InvalidRequest(
            f"{runs_dir} is {whole}, a folder of the checkout {checkout}: only its runs and data can be discarded"
        )


def _refuse_unknown(named: Path, folders: list[Path], is_ours: Callable[[Path, Path], bool]) -> None:
    found = [(folder, path) for folder in folders if _is_real_folder(folder) for path, _ in _files(folder, [])]
    if found and not any(is_ours(folder, path) for folder, path in found):
        raise InvalidRequest(
            f"{named} ({named.resolve()}) holds nothing that this project writes; "
            "look with --dry-run, then say --yes if all of it may go"
        )


def _is_category(folder: Path, path: Path) -> bool:
    """Footage lies in folders named by category."""
    return path.relative_to(folder).parts[0] in (*CATEGORIES, ADHOC)


def _is_result(_folder: Path, path: Path) -> bool:
    return any(path.match(mark) for mark in RUNS_MARKS)


def _is_real_folder(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink()


def _purge_folder(folder: Path, before: float | None, dry_run: bool) -> Part:
    if not _is_real_folder(folder):
        kind = f"is a link to {folder.readlink()}" if folder.is_symlink() else "is no folder"
        return Part(folder, 0, 0, (f"{folder} {kind}: left alone; discard what it names yourself, then remove it",))
    files = size_bytes = 0
    problems: list[str] = []
    for path, status in _files(folder, problems):
        if before is not None and status.st_mtime >= before:
            continue
        try:
            if not dry_run:
                path.unlink()
        except OSError as problem:
            problems.append(_said(problem))
            continue
        files += 1
        size_bytes += status.st_size if stat.S_ISREG(status.st_mode) else 0
    if not dry_run:
        _remove_empty_folders(folder)
    return Part(folder, files, size_bytes, tuple(problems))


def _files(folder: Path, problems: list[str]) -> Iterator[tuple[Path, os.stat_result]]:
    """Everything under ``folder`` that is not a folder, links themselves included.

    A folder that cannot be read adds to ``problems``.
    """

    def unreadable(problem: OSError) -> None:
        problems.append(_said(problem))

    for parent, folders, names in os.walk(folder, onerror=unreadable, followlinks=False):
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        for name in sorted(names + links):
            path = Path(parent, name)
            try:
                yield path, path.lstat()
            except FileNotFoundError:  # gone meanwhile, as it should be
                continue
            except OSError as problem:
                unreadable(problem)


def _said(problem: OSError) -> str:
    return f"{problem.filename}: {problem.strerror or problem}"


def _remove_empty_folders(folder: Path) -> None:
    for parent, _, _ in os.walk(folder, topdown=False, followlinks=False):
        try:
            Path(parent).rmdir()
        except OSError:  # something is still in it
            continue
