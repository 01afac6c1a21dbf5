"""Names and places, as the seed lays them out."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

from vision_bench.errors import UnknownName
from vision_bench.media.layout import (
    CATEGORIES,
    TARGETS,
    adhoc_name,
    base_name,
    blackout_folder,
    check_category,
    clip_name,
    clips_folder,
    list_clips,
)


def test_seven_targets_in_seven_categories() -> None:
    """Every category has one target; the esports source is lol.mp4."""
    assert sorted(category for category, _ in TARGETS) == sorted(CATEGORIES)
    assert dict(TARGETS)["esports"] == "lol.mp4"


def test_an_unknown_category_names_the_seven() -> None:
    """The message lists what there is."""
    with pytest.raises(UnknownName, match=r"'sport'.*baseball, docu, drama, entertain, esports, hist_drama, news"):
        check_category("sport")


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("lol.mp4", "lol"),
        ("LOL.MP4", "LOL"),
        ("a.mkv", "a.mkv"),
        ("two.dots.mp4", "two.dots"),
        ("none", "none"),
        ("..mp4", "..mp4"),
        (".mp4", ".mp4"),
    ],
)
def test_folder_of_a_source(name: str, base: str) -> None:
    """The name without .mp4; another ending stays; no name leads out of the folder."""
    assert base_name(Path("/any") / name) == base


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("film.mp4", "film"),
        ("가" * 83 + ".mkv", "가" * 82),
        ("a" * 255, "a" * 246),
        ("a" * 245 + "가나.mkv", "a" * 245),
        ("a" * 242 + "😀.mkv", "a" * 242 + "😀"),
        ("\udcff" * 250, "\udcff" * 246),
    ],
)
def test_folder_of_a_film_that_was_never_prepared(name: str, kept: str) -> None:
    """Its name, as much of it in whole characters as fits 255 bytes with the hash behind it."""
    made = adhoc_name(Path("/any") / name, "0123456789abcdef")
    assert made == f"{kept}-01234567"
    assert len(os.fsencode(made)) <= 255


def test_clip_names() -> None:
    """Number from 1, whole seconds with four digits, a fraction where there is one."""
    assert clip_name(1, Fraction(600), Fraction(606)) == "0001_0600-0606.mp4"
    assert clip_name(12, Fraction(5, 2), Fraction(5)) == "0012_0002.5-0005.mp4"


def test_places() -> None:
    """data/clips and data/blackout mirror each other."""
    assert clips_folder(Path("d"), "docu", "bbb") == Path("d/clips/docu/bbb")
    assert blackout_folder(Path("d"), "docu", "bbb") == Path("d/blackout/docu/bbb")


def test_listing_leaves_out_what_is_not_finished(tmp_path: Path) -> None:
    """By name, without hidden files."""
    folder = tmp_path / "clips" / "docu" / "bbb"
    folder.mkdir(parents=True)
    for name in ("0002_0006-0012.mp4", "0001_0000-0006.mp4", ".0003_0012-0018.mp4.part", ".x.mp4", "clips.json"):
        (folder / name).touch()
    assert [path.name for path in list_clips(tmp_path, "docu/bbb")] == ["0001_0000-0006.mp4", "0002_0006-0012.mp4"]
    with pytest.raises(UnknownName, match=r"'news/x'.*scenes there: docu/bbb"):
        list_clips(tmp_path, "news/x")
