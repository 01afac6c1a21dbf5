"""Exactly the source's frames, each once, with their sound: read from the frames themselves."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from tests.integration.numbered_film import BEEP_EVERY, BEEP_FIRST, constant_times, read_beeps, read_numbers, write_film

from vision_bench.media import cutting
from vision_bench.media.clips import prepare_source
from vision_bench.media.probe import probe
from vision_bench.media.scene import CutSettings

NTSC = Fraction(30000, 1001)
CHANGING = [
    *constant_times(Fraction(30), 3),
    *(3 + time for time in constant_times(Fraction(5), 3)),
    *(6 + time for time in constant_times(Fraction(24), 4)),
]


HOLED = [time for time in constant_times(Fraction(24), 10) if not Fraction(5, 2) < time < Fraction(17, 4)]
"""No frame in the first 1.25 s of the second clip."""


@dataclass(frozen=True)
class Film:
    name: str
    times: list[Fraction]
    container: str = "mp4"
    offset: Fraction = Fraction(0)


FILMS = (
    Film("24.mp4", constant_times(Fraction(24), 10)),
    Film("29_97.mp4", constant_times(NTSC, 10)),
    Film("29_97.mkv", constant_times(NTSC, 10), "matroska"),
    Film("23_976_late.ts", constant_times(Fraction(24000, 1001), 10), "mpegts", Fraction(3600)),
    Film("changing.mp4", CHANGING),
    Film("changing.mkv", CHANGING, "matroska"),
    Film("hole.mp4", HOLED),
    Film("60.mov", constant_times(Fraction(60), 7), "mov"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("films")


@pytest.mark.parametrize("encoder", ["libopenh264", "libx264"])
@pytest.mark.parametrize("film", FILMS, ids=lambda film: film.name)
def test_clips_share_out_the_frames(film: Film, encoder: str, folder: Path, tmp_path: Path) -> None:
    """2 s clips from 1 s on: each holds the frames with start <= time < end, from 0, in step with their sound."""
    source = folder / film.name
    if not source.exists():
        write_film(source, film.times, container=film.container, offset=film.offset)
    settings = CutSettings(start=Fraction(1), end=Fraction(7), length=Fraction(2), encoder=encoder, with_blackout=False)
    prepared = prepare_source(source, category="drama", data_dir=tmp_path, settings=settings)
    assert prepared.made == 3
    for index, clip in enumerate(prepared.paths):
        start = 1 + 2 * index
        wanted = [number for number, time in enumerate(film.times) if start <= time < start + 2]
        numbers, seconds = read_numbers(clip)
        assert numbers == wanted
        first = film.times[wanted[0]]
        assert seconds == pytest.approx([float(film.times[number] - first) for number in wanted], abs=0.0011)
        assert_beeps_are_in_step(clip, film, wanted, first)


def assert_beeps_are_in_step(clip: Path, film: Film, numbers: list[int], first: Fraction) -> None:
    """Every beep that starts in the clip does so within 20 ms of its frame."""
    due = [float(film.times[number] - first) for number in numbers if number % BEEP_EVERY == BEEP_FIRST]
    # A beep that began before the clip is heard from 0; one in the last instant may be too short to be heard.
    wanted = [at for at in due if 0.05 < at < 1.9]
    heard = [at for at in read_beeps(clip) if 0.05 < at < 1.9]
    assert wanted, "a clip without a beep would prove nothing"
    assert heard == pytest.approx(wanted, abs=0.020)


def test_a_constant_rate_stays_exact(folder: Path, tmp_path: Path) -> None:
    """29.97 in millisecond ticks comes out as 30000/1001 with not one step off."""
    source = folder / "rate.mkv"
    write_film(source, constant_times(NTSC, 5), container="matroska")
    settings = CutSettings(start=Fraction(0), end=Fraction(4), length=Fraction(2), with_blackout=False)
    prepared = prepare_source(source, category="drama", data_dir=tmp_path, settings=settings)
    for clip in prepared.paths:
        video = probe(clip).video
        assert video is not None
        assert (video.fps, video.is_constant_rate) == (NTSC, True)


def test_many_clips_come_from_one_process_where_that_is_right(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ordinary film is never cut clip by clip: the way that saves the time is the way that is taken."""
    alone: list[str] = []
    monkeypatch.setattr(cutting, "_cut_alone", lambda job, window, cancelled: alone.append(window.name))
    source = folder / "many.mp4"
    write_film(source, constant_times(Fraction(25), 8))
    settings = CutSettings(
        start=Fraction(0), end=Fraction(8), length=Fraction(1), encoder="libopenh264", with_blackout=False
    )
    prepared = prepare_source(source, category="drama", data_dir=tmp_path, settings=settings)
    assert (prepared.made, alone) == (8, [])


def test_what_one_process_gets_wrong_is_cut_again_alone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that leaves nothing behind costs time and no clip: each is then cut exactly, with the same encoder."""
    monkeypatch.setattr(cutting, "cut_run", lambda *arguments, **settings: None)
    source = folder / "again.mp4"
    times = constant_times(NTSC, 5)
    write_film(source, times)
    settings = CutSettings(
        start=Fraction(0), end=Fraction(4), length=Fraction(2), encoder="libopenh264", with_blackout=False
    )
    prepared = prepare_source(source, category="drama", data_dir=tmp_path, settings=settings)
    assert [read_numbers(clip)[0] for clip in prepared.paths] == [list(range(60)), list(range(60, 120))]
    assert prepared.failed == ()
