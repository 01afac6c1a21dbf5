"""Broadcasts as files: made, re-encoded, cut and read back."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from vision_bench.media.audio import decode_audio
from vision_bench.media.broadcast import make as making
from vision_bench.media.broadcast.check import ClipCheck, check_clip
from vision_bench.media.broadcast.genres import GENRES
from vision_bench.media.broadcast.labels import read_labels
from vision_bench.media.broadcast.make import MadeBroadcast, make_broadcast
from vision_bench.media.clips import prepare_source
from vision_bench.media.probe import probe
from vision_bench.media.scene import CutSettings


@pytest.fixture(scope="module")
def baseball(tmp_path_factory: pytest.TempPathFactory) -> MadeBroadcast:
    """18 s of baseball after 20 s of lead: one repeated pair of black groups, and a remainder."""
    return make_broadcast(GENRES["baseball"], tmp_path_factory.mktemp("film"), seconds=18, lead_seconds=20)


@pytest.fixture(scope="module")
def check(baseball: MadeBroadcast) -> ClipCheck:
    """The film, read back once."""
    return check_clip(baseball.film, read_labels(baseball.labels))


def test_the_film_is_what_the_table_says(baseball: MadeBroadcast) -> None:
    """640x360, H.264, exactly 30000/1001 throughout, AAC of the same length, both from 0."""
    info = probe(baseball.film)
    video, sound = info.video, info.audio[0]
    assert video is not None
    assert (video.codec, video.width, video.height, video.pix_fmt) == ("h264", 640, 360, "yuv420p")
    assert video.is_constant_rate
    assert video.fps == Fraction(30000, 1001)
    assert video.frames == baseball.frames == 1139
    assert (sound.codec, sound.sample_rate, sound.channels) == ("aac", 48000, 2)
    assert video.start_seconds == pytest.approx(0, abs=0.001)
    assert sound.duration_seconds == pytest.approx(video.duration_seconds, abs=0.05)
    assert info.warnings == ()


def test_every_frame_is_stamped_and_sound_keeps_to_the_picture(check: ClipCheck) -> None:
    """All stamps read, in order; every beep begins within 5 ms of its flash."""
    assert check.faults(max_offset_ms=5) == []
    assert len(check.av_offsets_ms) >= 3


def test_marks_are_where_the_labels_say(baseball: MadeBroadcast, check: ClipCheck) -> None:
    """Every flash on its frame, every beep within 5 ms of its time, none more."""
    labels = read_labels(baseball.labels)
    marks = labels["marks"]["items"]
    assert check.flashes_seconds == pytest.approx([it["seconds"] for it in marks if it["flash"]], abs=0.001)
    assert check.beeps_seconds == pytest.approx([it["seconds"] for it in marks if it["beep"]], abs=0.005)


def test_the_lead_is_black_and_silent(baseball: MadeBroadcast) -> None:
    """Up to the first stamped frame every frame decodes, in time and order, to black, and every sample to silence."""
    labels = read_labels(baseball.labels)
    with av.open(str(baseball.film)) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number == labels["lead_frames"]:
                break
            assert frame.time == pytest.approx(number * 1001 / 30000, abs=1e-4)
            assert np.frombuffer(memoryview(frame.planes[0]), np.uint8).max() <= 17
    samples = decode_audio(baseball.film, rate=48000)
    assert samples is not None
    assert np.abs(samples[: 48000 * 19]).max() < 0.001
    assert np.abs(samples[48000 * 20 :]).max() > 0.1


def test_stamps_survive_the_experiments_bitrate(baseball: MadeBroadcast, tmp_path: Path) -> None:
    """Cut with the cutter's own settings at 1500 kbit/s, each window is its clip: same frames, no slip, 20 ms."""
    settings = CutSettings(start=Fraction(20), end=Fraction(38), encoder="libx264", jobs=1)
    prepared = prepare_source(baseball.film, category="baseball", data_dir=tmp_path, settings=settings)
    labels = read_labels(baseball.labels)
    assert [path.stem for path in prepared.paths] == [window["clip"] for window in labels["windows"]]
    for path in prepared.paths:
        check = check_clip(path, labels)
        assert check.faults() == []
        assert check.unread == 0


def test_a_wrong_cut_is_noticed(baseball: MadeBroadcast, tmp_path: Path) -> None:
    """A clip that starts a frame late, lacks one in the middle, or comes from another film fails with the reason."""
    labels = read_labels(baseball.labels)
    clip = tmp_path / f"{labels['windows'][0]['clip']}.mp4"
    first = labels["windows"][0]["first_frame"]
    _copy_frames(baseball.film, clip, [*range(first + 1, first + 60), *range(first + 61, first + 90)])
    faults = "; ".join(check_clip(clip, {**labels, "genre_number": 1}).faults())
    assert f"starts with frame {first + 1}, not {first}" in faults
    assert "1 places where a frame is lost" in faults
    assert "holds 88 frames" in faults
    assert "88 frames come from another broadcast" in faults


def _copy_frames(source: Path, target: Path, wanted: list[int]) -> None:
    with av.open(str(source)) as container, av.open(str(target), "w") as out:
        stream = out.add_stream("libx264", rate=30, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        kept = set(wanted)
        for number, frame in enumerate(container.decode(video=0)):
            if number in kept:
                frame.pts = None
                out.mux(stream.encode(frame))
            if number > max(wanted):
                break
        out.mux(stream.encode(None))


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    """Two runs give equal films and equal labels; another seed gives other labels."""
    first, second, other = (
        make_broadcast(GENRES["baseball"], tmp_path / name, seconds=2, lead_seconds=17, seed=seed)
        for name, seed in (("a", 3), ("b", 3), ("c", 4))
    )
    assert first.film.read_bytes() == second.film.read_bytes()
    assert first.labels.read_bytes() == second.labels.read_bytes()
    assert first.labels.read_bytes() != other.labels.read_bytes()


@pytest.mark.parametrize("genre", GENRES)
def test_every_genre_has_its_size_and_rate(genre: str, tmp_path: Path) -> None:
    """Half a second of each: size, exact rate, frames, name and matrix as the table says; labels agree."""
    wanted = GENRES[genre]
    made = make_broadcast(wanted, tmp_path, seconds=0.5)
    video = probe(made.film).video
    assert video is not None
    assert (video.width, video.height, video.fps) == (wanted.width, wanted.height, wanted.fps)
    assert video.frames == -(-wanted.fps // 2)
    assert made.film.name == wanted.file_name
    assert made.labels.name == f"{made.film.stem}.labels.json"
    labels = json.loads(made.labels.read_text(encoding="utf-8"))
    assert (labels["genre"], labels["film"], labels["frames"]) == (genre, made.film.name, made.frames)
    with av.open(str(made.film)) as container:
        assert container.streams.video[0].codec_context.colorspace == (1 if wanted.is_hd else 6)


def test_without_stamp_there_are_no_aids(tmp_path: Path) -> None:
    """No frame carries a stamp, none flashes, nothing beeps; the picture fills the strip's place."""
    made = make_broadcast(GENRES["baseball"], tmp_path, seconds=4, stamp=False)
    labels = read_labels(made.labels)
    check = check_clip(made.film, labels)
    assert check.unread == check.frames == 120
    assert check.flashes_seconds == check.beeps_seconds == ()


def test_an_interrupted_making_leaves_nothing(tmp_path: Path) -> None:
    """Neither a film nor a temporary file stays when drawing fails."""

    def stop(done: int, total: int) -> None:
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_broadcast(GENRES["baseball"], tmp_path, seconds=2, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_no_espeak_makes_a_film_without_speech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The film is made, the labels name no speech, and a warning says what to install."""
    monkeypatch.setattr(making, "find_espeak", lambda: None)
    made = make_broadcast(GENRES["drama"], tmp_path, seconds=6)
    labels = read_labels(made.labels)
    assert "vision-bench[broadcast]" in made.warnings[0]
    assert labels["speech"] is None
    assert labels["windows"][0]["speech"] == []
    assert labels["windows"][0]["measurable"]["audio"]["speech_seconds"]["value"] == 0
