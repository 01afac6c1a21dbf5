"""What must never be in the repository: media, registry hosts, machine paths, oversize files."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# Folders that git ignores or that tools make; the rule is about what a clone holds.
IGNORED = {".git", "data", "runs", "dist", "build", "__pycache__", ".cache"}
MEDIA = {".mp4", ".mkv", ".mov", ".avi", ".webm", ".ts", ".wav", ".mp3", ".m4a", ".aac", ".mpg"}
LIMIT_BYTES = 600_000


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that a clone would hold, judged by the ignore rules' folders."""
    found: list[Path] = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in IGNORED and (not name.startswith(".") or name == ".ci")]
        names = [name for name in files if not name.startswith(".") or name in {".env.example", ".gitignore"}]
        found += [Path(folder, name) for name in names if not name.endswith(".pyc")]
    assert len(found) > 50, "the walk finds nothing: the test would pass on an empty tree"
    return tuple(found)


def text_files() -> list[tuple[str, str]]:
    """(name, text) of everything that is text."""
    found = []
    for path in tracked():
        try:
            found.append((str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def test_no_media_file_is_in_the_tree() -> None:
    """Footage, clips and sound live in data/ and runs/ only (docs/data.md)."""
    assert [path.name for path in tracked() if path.suffix.lower() in MEDIA] == []


def test_data_and_runs_are_ignored() -> None:
    """The two places where media and answers are written never reach a commit."""
    rules = (ROOT / ".gitignore").read_text().splitlines()
    assert {"/data/", "/runs/", "uv.lock"} <= set(rules)


def test_no_large_file() -> None:
    """A clone stays quick; lock files are the largest."""
    assert [(path.name, path.stat().st_size) for path in tracked() if path.stat().st_size > LIMIT_BYTES] == []


def test_no_result_file_holds_an_answer() -> None:
    """Committed results are counts, timings and hashes: no message content, no data: URI payload."""
    results = [*ROOT.glob("experiments/*/*.json"), *ROOT.glob("benchmarks/*/*.json")]
    for path in results:
        text = path.read_text(encoding="utf-8")
        assert '"content"' not in text, path
        assert "base64," not in text, path


@pytest.mark.parametrize(
    "pattern",
    [
        r"https?://[^\s\"']*pypi\.org[^\s\"']*",
        r"files\.pythonhosted",
        r"/home/[a-z]+/",
        r"/roo[t]/",
    ],
)
def test_no_registry_host_and_no_machine_path(pattern: str) -> None:
    """Locks and documents name packages, not where they came from; nothing points into somebody's home."""
    here = str(Path(__file__).relative_to(ROOT))
    assert [name for name, text in text_files() if name != here and re.search(pattern, text)] == []
