"""Where media lies under the data folder, and what the clips are called."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

from vision_bench.errors import UnknownName

CATEGORIES = MappingProxyType(
    {
        "news": "News",
        "docu": "Documentary",
        "baseball": "Baseball broadcast",
        "entertain": "Variety show",
        "drama": "Contemporary drama",
        "hist_drama": "Historical drama",
        "esports": "Esports",
    }
)
"""Category key to genre, in the order of the final table."""

TARGETS = (
    ("baseball", "baseball.mp4"),
    ("docu", "docu.mp4"),
    ("drama", "drama.mp4"),
    ("entertain", "entertain.mp4"),
    ("esports", "lol.mp4"),
    ("hist_drama", "hist_drama.mp4"),
    ("news", "news.mp4"),
)
"""(category, source name) that ``prepare --all`` walks."""

ADHOC = "adhoc"
"""Category of files that were never prepared and are cut when they are analysed."""

MANIFEST_NAME = "clips.json"

MAX_NAME_BYTES = 255
"""Of one file or folder, on every common file system."""


def check_category(category: str) -> str:
    """``category`` itself when it is one of the seven; UnknownName lists them otherwise."""
    if category not in CATEGORIES:
        raise UnknownName(f"no category {category!r}; choose one of: {', '.join(sorted(CATEGORIES))}")
    return category


def base_name(source: Path) -> str:
    """The folder name of a source: its name without ``.mp4``. Another ending stays: ``a.mkv`` is not ``a.mp4``."""
    name = source.name
    stem = name[: -len(".mp4")] if name.lower().endswith(".mp4") else name
    return stem if stem.strip(".") else name


def adhoc_name(source: Path, sha256: str) -> str:
    """Its base name and the start of its hash, the first cut between two characters so that both fit a file name."""
    ending = f"-{sha256[:8]}"
    kept = os.fsencode(base_name(source))
    room = MAX_NAME_BYTES - len(ending)
    if len(kept) > room:
        while room and _is_inside_character(kept[room]):
            room -= 1
        kept = kept[:room]
    return os.fsdecode(kept) + ending


def _is_inside_character(byte: int) -> bool:
    """A continuation byte of UTF-8."""
    return byte & 0xC0 == 0x80


def raw_path(data_dir: Path, category: str, name: str) -> Path:
    """Where a source is looked for."""
    return data_dir / "raw" / category / name


def clips_folder(data_dir: Path, category: str, base: str) -> Path:
    """Where the clips of a source are put, with `MANIFEST_NAME` beside them."""
    return data_dir / "clips" / category / base


def blackout_folder(data_dir: Path, category: str, base: str) -> Path:
    """Where the black copy of its first clip is put."""
    return data_dir / "blackout" / category / base


def clip_name(seq: int, start: Fraction, end: Fraction) -> str:
    """``0001_0600-0606.mp4``: number from 1, then start and end in the source, whole seconds (``0600.5`` if not)."""
    return f"{seq:04d}_{_seconds(start)}-{_seconds(end)}.mp4"


def _seconds(value: Fraction) -> str:
    if value.denominator == 1:
        return f"{value.numerator:04d}"
    return f"{float(value):09.4f}".rstrip("0")


def list_clips(data_dir: Path, scene: str) -> list[Path]:
    """Finished clips of ``scene`` (``category/base``), by name.

    Raises:
        UnknownName: no such scene; the message lists those that exist.
    """
    root = data_dir / "clips"
    found = sorted(path for path in (root / scene).glob("*.mp4") if not path.name.startswith("."))
    if found:
        return found
    scenes = sorted(str(path.parent.relative_to(root)) for path in root.glob(f"*/*/{MANIFEST_NAME}"))
    known = ", ".join(scenes) if scenes else "none; run `vision-bench prepare` first"
    raise UnknownName(f"no clips of scene {scene!r} in {root}; scenes there: {known}")
