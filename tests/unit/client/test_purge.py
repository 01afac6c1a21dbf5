"""client.purge: everything of an evaluation goes, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vision_bench.client.purge import purge
from vision_bench.errors import InvalidRequest

NOW = 1_800_000_000.0


def put(path: Path, size_bytes: int = 10, *, days_old: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size_bytes)
    os.utime(path, (NOW - days_old * 86_400, NOW - days_old * 86_400))
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    put(tmp_path / "data/raw/news/news.mp4", 100, days_old=9)
    put(tmp_path / "data/clips/news/news/0001.mp4", 20, days_old=2)
    put(tmp_path / "data/blackout/news/news/0001.mp4", 5)
    put(tmp_path / "data/notes/mine.txt")
    put(tmp_path / "runs/demo/results.ndjson", 7, days_old=9)
    return tmp_path


def run(tree: Path, **settings: object) -> dict[str, tuple[int, int]]:
    parts = purge(data_dir=tree / "data", runs_dir=tree / "runs", now_seconds=NOW, **settings)  # type: ignore[arg-type]
    return {part.folder.name: (part.files, part.size_bytes) for part in parts}


def left(tree: Path) -> list[str]:
    return sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file() or path.is_symlink())


def test_everything_goes_but_what_is_not_ours(tree: Path) -> None:
    """Raw, clips, blackout and runs with their folders; a folder of somebody's own stays."""
    assert run(tree) == {"raw": (1, 100), "clips": (1, 20), "blackout": (1, 5), "runs": (1, 7)}
    assert left(tree) == ["data/notes/mine.txt"]
    assert sorted(path.name for path in tree.iterdir()) == ["data"]
    assert run(tree) == {}


def test_dry_run_counts_and_removes_nothing(tree: Path) -> None:
    """The same list, and every file still there."""
    before = left(tree)
    assert run(tree, dry_run=True) == {"raw": (1, 100), "clips": (1, 20), "blackout": (1, 5), "runs": (1, 7)}
    assert left(tree) == before


def test_older_than_keeps_the_recent_ones(tree: Path) -> None:
    """A week old goes, two days old stays."""
    assert run(tree, older_than_days=7) == {"raw": (1, 100), "clips": (0, 0), "blackout": (0, 0), "runs": (1, 7)}
    assert left(tree) == ["data/blackout/news/news/0001.mp4", "data/clips/news/news/0001.mp4", "data/notes/mine.txt"]


def test_links_are_removed_and_never_followed(tree: Path) -> None:
    """A source linked into data/raw is still where it was; so is a whole linked folder."""
    film = put(tree / "elsewhere/film.mp4")
    (tree / "data/raw/news/linked.mp4").symlink_to(film)
    (tree / "data/clips/linked").symlink_to(film.parent, target_is_directory=True)
    assert run(tree)["raw"] == (2, 100)
    assert left(tree) == ["data/notes/mine.txt", "elsewhere/film.mp4"]


def test_a_linked_part_is_left_alone(tree: Path) -> None:
    """data/raw as a link to a film library is not ours to empty."""
    put(tree / "library/a.mp4")
    (tree / "data/raw").rename(tree / "old")
    (tree / "data/raw").symlink_to(tree / "library", target_is_directory=True)
    assert "raw" not in run(tree)
    assert (tree / "library/a.mp4").exists()


def test_folders_that_hold_too_much_are_refused(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root, the home, this folder and all above it."""
    monkeypatch.chdir(tree / "data")
    for folder in (Path("/"), Path.home(), Path(), tree):
        with pytest.raises(InvalidRequest, match="too much"):
            purge(data_dir=tree / "x", runs_dir=folder, now_seconds=NOW)
    assert len(left(tree)) == 5
