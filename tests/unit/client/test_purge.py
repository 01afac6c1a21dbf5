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


@pytest.mark.parametrize("part", ["data/raw", "data/clips", "data/blackout", "runs"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_linked_part_is_left_alone_and_told(tree: Path, part: str, dry_run: bool) -> None:
    """A part that is a link to a library is not ours to empty; link and target are named, the others go."""
    put(tree / "library/a.mp4")
    (tree / part).rename(tree / "old")
    (tree / part).symlink_to(tree / "library", target_is_directory=True)
    parts = purge(data_dir=tree / "data", runs_dir=tree / "runs", now_seconds=NOW, dry_run=dry_run)
    told = [line for found in parts for line in found.problems]
    assert len(told) == 1
    assert f"{tree / part} is a link to {tree / 'library'}" in told[0]
    assert sum(found.files for found in parts) == 3
    assert (tree / "library/a.mp4").exists()


def test_a_part_that_is_no_folder_is_told(tree: Path) -> None:
    """A link to nowhere and a file in a folder's place are not passed over."""
    run(tree)
    (tree / "runs").symlink_to(tree / "nowhere")
    put(tree / "data/raw")
    parts = purge(data_dir=tree / "data", runs_dir=tree / "runs", now_seconds=NOW)
    assert [("is no folder" in part.problems[0], "nowhere" in part.problems[0]) for part in parts] == [
        (True, False),
        (False, True),
    ]


def test_a_folder_that_cannot_be_read_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may be in there stays, so it is a problem and no success."""

    def forbidden(path: object) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", forbidden)
    parts = purge(data_dir=tree / "data", runs_dir=tree / "runs", now_seconds=NOW)
    assert [part.problems for part in parts] == [(f"{part.folder}: Permission denied",) for part in parts]
    assert len(parts) == 4


@pytest.mark.parametrize("days", [float("nan"), float("inf"), float("-inf"), -1.0])
def test_an_age_that_is_no_number_of_days_is_refused(tree: Path, days: float) -> None:
    """NaN is older than nothing and younger than nothing: it must not mean everything."""
    before = left(tree)
    with pytest.raises(InvalidRequest, match="finite number from 0"):
        run(tree, older_than_days=days)
    assert left(tree) == before


def test_folders_that_hold_too_much_are_refused(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root, the home, this folder and all above it."""
    monkeypatch.chdir(tree / "data")
    for folder in (Path("/"), Path.home(), Path(), tree):
        with pytest.raises(InvalidRequest, match="too much"):
            purge(data_dir=tree / "x", runs_dir=folder, now_seconds=NOW)
    assert len(left(tree)) == 5


@pytest.mark.parametrize("folder", ["/usr", "/usr/share/doc", "/etc", "/var", "/tmp", "/home", "/dev/shm"])  # noqa: S108
@pytest.mark.parametrize("which", ["data_dir", "runs_dir"])
def test_folders_of_the_system_are_refused(tree: Path, folder: str, which: str) -> None:
    """Sure or not, only listed or not."""
    folders = {"data_dir": tree / "data", "runs_dir": tree / "runs"} | {which: Path(folder)}
    with pytest.raises(InvalidRequest, match="too much"):
        purge(**folders, now_seconds=NOW, dry_run=True, is_sure=True)


def test_of_a_checkout_only_runs_and_data_can_go(tree: Path) -> None:
    """Sources stay, sure or not; a run may be discarded by itself."""
    (tree / ".git").mkdir()
    put(tree / "src/package/module.py")
    put(tree / "src/data/golden.ndjson")
    for folder in (tree / "src", tree / "src/package", tree / "src/data"):
        with pytest.raises(InvalidRequest, match="folder of the checkout"):
            purge(data_dir=tree / "data", runs_dir=folder, now_seconds=NOW, is_sure=True)
    assert len(left(tree)) == 7
    purge(data_dir=tree / "data", runs_dir=tree / "runs/demo", now_seconds=NOW)
    assert left(tree) == ["data/notes/mine.txt", "src/data/golden.ndjson", "src/package/module.py"]


def test_a_folder_with_nothing_of_ours_goes_only_when_sure(tree: Path) -> None:
    """Other programs keep a runs or data/raw folder too. Listing needs no word, nor does an empty folder."""
    put(tree / "other/runs/events.out.tfevents")
    put(tree / "other/data/raw/table.csv")
    (tree / "empty").mkdir()
    theirs = {"data_dir": tree / "other/data", "runs_dir": tree / "other/runs"}
    for which, folder in theirs.items():
        with pytest.raises(InvalidRequest, match="--yes"):
            purge(**{"data_dir": tree / "data", "runs_dir": tree / "runs", which: folder}, now_seconds=NOW)
    assert len(left(tree)) == 7
    assert len(purge(**theirs, now_seconds=NOW, dry_run=True)) == 2
    assert len(purge(**theirs, now_seconds=NOW, is_sure=True)) == 2
    assert len(left(tree)) == 5
    assert len(purge(data_dir=tree / "empty", runs_dir=tree / "empty", now_seconds=NOW)) == 1
