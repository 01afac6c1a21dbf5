"""A folder of clips over several runs: nothing made twice, nothing half made, nothing of another run left."""

from __future__ import annotations

import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.integration.numbered_film import constant_times, read_numbers, write_film

from vision_bench.errors import InvalidMedia, InvalidRequest
from vision_bench.media.clips import cut_whole, prepare_source
from vision_bench.media.layout import list_clips
from vision_bench.media.manifest import read_manifest
from vision_bench.media.scene import CutSettings, Prepared

SETTINGS = CutSettings(start=Fraction(0), end=Fraction(6), length=Fraction(1), jobs=2)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """6.2 s at 25 frames a second."""
    return write_film(tmp_path_factory.mktemp("film") / "film.mp4", constant_times(Fraction(25), 6.2))


def cut(film: Path, data_dir: Path, settings: CutSettings = SETTINGS, **more: Any) -> Prepared:
    return prepare_source(film, category="esports", data_dir=data_dir, settings=settings, **more)


def stamps(prepared: Prepared) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in prepared.paths}


def test_a_second_run_touches_nothing(film: Path, tmp_path: Path) -> None:
    """All six are reused; no file is written anew but the manifest, which says the same."""
    first = cut(film, tmp_path)
    before = stamps(first)
    second = cut(film, tmp_path)
    assert (first.made, first.reused, second.made, second.reused) == (6, 0, 6, 6)
    assert stamps(second) == before
    assert second.manifest == first.manifest


def test_the_source_is_not_touched(film: Path, tmp_path: Path) -> None:
    """Neither its bytes nor its time change, and no copy of it appears."""
    before = (film.read_bytes(), film.stat().st_mtime_ns)
    cut(film, tmp_path)
    assert (film.read_bytes(), film.stat().st_mtime_ns) == before
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), lambda path: path.unlink()])
def test_a_broken_clip_is_made_again_and_only_that(film: Path, tmp_path: Path, damage: Any) -> None:
    """A 0-byte file is never taken for a finished clip."""
    first = cut(film, tmp_path)
    before = stamps(first)
    damage(first.paths[2])
    second = cut(film, tmp_path)
    assert (second.made, second.reused) == (6, 5)
    changed = {name for name, stamp in stamps(second).items() if before[name] != stamp}
    assert changed == {"0003_0002-0003.mp4"}
    assert read_numbers(second.paths[2])[0] == list(range(50, 75))


@pytest.mark.parametrize("encoder", ["libopenh264", "libx264"])
def test_an_interrupted_run_leaves_finished_clips_only_and_goes_on(film: Path, tmp_path: Path, encoder: str) -> None:
    """Stopped after the second clip: no temporary file is left; the next run makes the rest."""
    settings = replace(SETTINGS, encoder=encoder, jobs=1)

    def stop(ready: int, wanted: int) -> None:
        if ready == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut(film, tmp_path, settings, progress=stop)
    folder = tmp_path / "clips" / "esports" / "film"
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    kept = read_manifest(folder)
    assert kept is not None and kept["made"] >= 2
    second = cut(film, tmp_path, settings)
    assert (second.made, second.reused) == (6, kept["made"])


def test_other_settings_replace_the_set(film: Path, tmp_path: Path) -> None:
    """Six clips of 1 s, then three of 2 s: the folder holds the three; a stranger's file stays."""
    cut(film, tmp_path)
    folder = tmp_path / "clips" / "esports" / "film"
    (folder / "mine.txt").write_text("keep")
    second = cut(film, tmp_path, replace(SETTINGS, length=Fraction(2)))
    names = [path.name for path in list_clips(tmp_path, "esports/film")]
    assert names == ["0001_0000-0002.mp4", "0002_0002-0004.mp4", "0003_0004-0006.mp4"]
    assert second.reused == 0
    assert (folder / "mine.txt").exists()


def test_a_longer_range_keeps_what_it_shares(film: Path, tmp_path: Path) -> None:
    """Three seconds, then six: the first three clips stay as they are."""
    cut(film, tmp_path, replace(SETTINGS, end=Fraction(3)))
    assert cut(film, tmp_path).reused == 3


def test_a_changed_source_is_cut_anew(film: Path, tmp_path: Path) -> None:
    """Same name, other bytes: nothing of the old one is kept."""
    source = tmp_path / "raw" / "film.mp4"
    source.parent.mkdir()
    shutil.copy(film, source)
    cut(source, tmp_path)
    write_film(source, constant_times(Fraction(24), 6.2))
    second = cut(source, tmp_path)
    assert (second.made, second.reused) == (6, 0)
    assert second.manifest["clips"][0]["frames"] == 24


def test_two_sources_do_not_share_a_folder(film: Path, tmp_path: Path) -> None:
    """FILM.MP4 and FILM.mp4 would: the second is refused, by name, and the first one's clips stay."""
    names = ("FILM.mp4", "FILM.MP4")
    for name in names:
        shutil.copy(film, tmp_path / name)
    cut(tmp_path / names[0], tmp_path / "data")
    with pytest.raises(InvalidMedia, match=r"FILM\.MP4: .* already holds the clips of FILM\.mp4"):
        cut(tmp_path / names[1], tmp_path / "data")
    assert len(list_clips(tmp_path / "data", "esports/FILM")) == 6


def test_a_short_source_gives_what_it_can(film: Path, tmp_path: Path) -> None:
    """The seed's range on 6.2 s: nothing is made, nothing is left but the list of what is missing."""
    prepared = cut(film, tmp_path, CutSettings())
    assert (prepared.made, prepared.asked, prepared.is_short) == (0, 100, True)
    assert [path.name for path in prepared.folder.iterdir()] == ["clips.json"]
    assert len(prepared.manifest["not_made"]) == 100


def test_a_remainder_is_listed_when_it_is_too_short(film: Path, tmp_path: Path) -> None:
    """6.2 s in ones: the last 0.2 s are in the manifest with their reason."""
    prepared = cut(film, tmp_path, replace(SETTINGS, end=Fraction(7)))
    assert prepared.made == 6
    (missing,) = prepared.manifest["not_made"]
    assert (missing["seq"], missing["held_seconds"]) == (7, 0.2)
    assert "under the minimum of 0.5 s" in missing["reason"]


def test_the_black_copy_follows_the_first_clip(film: Path, tmp_path: Path) -> None:
    """Reused while the first clip is the same; made anew, under the new name, when it is another."""
    black = tmp_path / "blackout" / "esports" / "film"
    cut(film, tmp_path)
    stamp = (black / "0001_0000-0001.mp4").stat().st_mtime_ns
    cut(film, tmp_path)
    assert (black / "0001_0000-0001.mp4").stat().st_mtime_ns == stamp
    cut(film, tmp_path, replace(SETTINGS, start=Fraction(1)))
    assert [path.name for path in black.iterdir()] == ["0001_0001-0002.mp4"]


def test_no_such_sound_track_is_said_with_those_there_are(film: Path, tmp_path: Path) -> None:
    """The message names the file and its tracks."""
    with pytest.raises(InvalidRequest, match=r"film\.mp4 has 1 sound tracks, none with index 3; tracks: 0 \("):
        cut(film, tmp_path, replace(SETTINGS, audio_index=3))


def test_a_film_that_was_never_prepared_is_cut_whole(film: Path, tmp_path: Path) -> None:
    """Into data/clips/adhoc, under its name and the start of its hash; a second call finds the clips."""
    first = cut_whole(film, data_dir=tmp_path, length=Fraction(2))
    assert first.scene.startswith("adhoc/film-")
    assert [path.name for path in first.paths] == [
        "0001_0000-0002.mp4",
        "0002_0002-0004.mp4",
        "0003_0004-0006.mp4",
    ]
    assert [read_numbers(path)[0][0] for path in first.paths] == [0, 50, 100]
    assert not first.is_short
    assert not (tmp_path / "blackout").exists()
    assert cut_whole(film, data_dir=tmp_path, length=Fraction(2)).reused == 3
