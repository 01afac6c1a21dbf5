"""Every hard file through the cutter, with each encoder: what comes out, what is said, what is left behind."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from tests.integration.hard_media import CASES, NAMES, Case, Workshop, has_index_in_front

from vision_bench.errors import InvalidMedia
from vision_bench.media.blackout import sound_packets
from vision_bench.media.clips import prepare_source
from vision_bench.media.encoders import choose_encoder
from vision_bench.media.probe import probe
from vision_bench.media.scene import CutSettings, Prepared
from vision_bench.media.tracks import MediaInfo

ENCODERS = ("libopenh264", "libx264")
CUT = [case for case in CASES if case.handling != "reject"]
REFUSED = [case for case in CASES if case.handling == "reject"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Makes each file once."""
    return Workshop(tmp_path_factory.mktemp("hard"))


def cut(source: Path, data_dir: Path, encoder: str, seconds: int = 2) -> Prepared:
    end = Fraction(seconds)
    settings = CutSettings(start=Fraction(0), end=end, length=end, encoder=encoder, jobs=1)
    return prepare_source(source, category="docu", data_dir=data_dir, settings=settings)


def said(prepared: Prepared) -> set[str]:
    """The codes of all warnings, on the source and on its clips."""
    manifest = prepared.manifest
    texts = [*manifest["source"]["warnings"], *(text for clip in manifest["clips"] for text in clip["warnings"])]
    return {text.split(":", 1)[0] for text in texts}


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def mean_luma(path: Path) -> float:
    with av.open(str(path)) as container:
        return float(
            np.mean(
                [np.asarray(frame.reformat(32, 32, "gray").to_ndarray()).mean() for frame in container.decode(video=0)]
            )
        )


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("case", CUT, ids=lambda case: case.name)
def test_a_clip_has_the_one_form(case: Case, encoder: str, shop: Workshop, tmp_path: Path) -> None:
    """H.264 yuv420p, even, upright, AAC, index in front, all frames from 0, the rate as it was; oddities are said."""
    prepared = cut(shop.make(case), tmp_path, encoder, case.seconds)
    assert prepared.made == 1
    clip = prepared.paths[0]
    info = probe(clip)
    video = info.video
    assert video is not None
    assert (video.codec, video.pix_fmt, video.rotation) == ("h264", "yuv420p", 0)
    assert not video.is_full_range
    assert (video.width, video.height) == (case.width, case.height)
    assert case.frames in (None, video.frames)
    assert video.start_seconds == 0.0
    assert case.is_constant_rate in (None, video.is_constant_rate)
    assert [track.codec for track in info.audio] == (["aac"] if case.has_audio else [])
    assert has_index_in_front(clip)
    entry = prepared.manifest["clips"][0]
    assert entry["has_audio"] == case.has_audio
    assert entry["frames"] == video.frames
    assert (case.warning is None) or case.warning in said(prepared)
    blackout_is_a_copy(prepared, tmp_path, info)
    only_finished_files(tmp_path)


def blackout_is_a_copy(prepared: Prepared, data_dir: Path, info: MediaInfo) -> None:
    """The black copy: same name, same frames, every sound packet bit for bit, black."""
    clip = prepared.paths[0]
    black = data_dir / "blackout" / prepared.scene / clip.name
    copied = probe(black)
    assert copied.video is not None and info.video is not None
    assert copied.video.frames == info.video.frames
    assert copied.video.fps == info.video.fps
    assert sound_packets(black) == sound_packets(clip)
    assert copied.has_audio == info.has_audio
    assert mean_luma(black) < 17.5


def only_finished_files(data_dir: Path) -> None:
    """No temporary file and no stub of one: a file of 262 bytes without a stream is what the seed's loop leaves."""
    for path in files_in(data_dir):
        assert not path.name.startswith(".")
        assert path.name == "clips.json" or path.stat().st_size > 500


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_is_no_film_is_refused(case: Case, encoder: str, shop: Workshop, tmp_path: Path) -> None:
    """One error that names the file and says what to do; nothing is written."""
    source = shop.make(case)
    with pytest.raises(InvalidMedia, match=case.name.replace(".", r"\.")) as raised:
        cut(source, tmp_path, encoder)
    assert ";" in str(raised.value), "a remedy follows the reason"
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_any_file_name(name: str | bytes, encoder: str, shop: Workshop, tmp_path: Path) -> None:
    """No name is read as an option, a protocol, a pattern or a command; the manifest gives it back."""
    source = tmp_path / "raw" / os.fsdecode(name)
    source.parent.mkdir()
    source.write_bytes(shop.make(CASES[0]).read_bytes())
    settings = CutSettings(start=Fraction(0), end=Fraction(1, 2), length=Fraction(1, 2), encoder=encoder, jobs=1)
    prepared = prepare_source(source, category="news", data_dir=tmp_path / "data", settings=settings)
    assert prepared.made == 1
    assert probe(prepared.paths[0]).video is not None
    assert os.fsencode(prepared.manifest["source"]["name"]) == os.fsencode(source.name)
    only_finished_files(tmp_path / "data")
    again = prepare_source(source, category="news", data_dir=tmp_path / "data", settings=settings)
    assert again.reused == 1


def test_sound_track_is_chosen_by_index(shop: Workshop, tmp_path: Path) -> None:
    """The default track is Korean at 440 Hz; --audio-index 1 takes the English one at 880 Hz."""
    source = shop.make(next(case for case in CASES if case.name.startswith("two_audio")))
    pitches = []
    for index in (None, 1):
        settings = CutSettings(start=Fraction(0), end=Fraction(2), audio_index=index)
        prepared = prepare_source(source, category="docu", data_dir=tmp_path / str(index), settings=settings)
        pitches.append(loudest_hz(prepared.paths[0]))
    assert pitches == pytest.approx([440, 880], abs=5)


def loudest_hz(path: Path) -> float:
    with av.open(str(path)) as container:
        samples = np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])
        rate = container.streams.audio[0].rate
    strength = np.abs(np.fft.rfft(samples))
    return float(strength.argmax() * rate / len(samples))


def test_a_turned_film_stands_upright(shop: Workshop, tmp_path: Path) -> None:
    """Turned by 90 degrees in the header: the clip's pixels are the plain film's, turned clockwise."""
    plain, turned = (cut(shop.make(case), tmp_path, "libx264") for case in CASES if case.name in UPRIGHT)
    before, after = (first_picture(prepared.paths[0]) for prepared in (plain, turned))
    assert np.abs(np.rot90(before, -1) - after).mean() < 6
    assert np.abs(np.rot90(before, 1) - after).mean() > 20


UPRIGHT = ("plain.mp4", "rotate_90.mp4")


def first_picture(path: Path) -> np.ndarray:
    with av.open(str(path)) as container:
        return next(container.decode(video=0)).to_ndarray(format="gray").astype(float)


def test_the_encoders_under_test_are_the_real_ones() -> None:
    """Both are on this machine, so that no test above ran the same one twice."""
    assert [choose_encoder(name).name for name in ENCODERS] == list(ENCODERS)
    assert choose_encoder("auto").name == "libopenh264"
