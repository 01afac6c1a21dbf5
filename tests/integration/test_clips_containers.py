"""Old and bare containers: sound of unnamed channels, times that are guessed, streams that nothing can decode."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest
from tests.integration.hard_media import Workshop
from tests.integration.numbered_film import BEEP_EVERY, BEEP_FIRST, constant_times, read_beeps, read_numbers, write_film

from vision_bench.errors import InvalidMedia
from vision_bench.media import cutting
from vision_bench.media.audio import decode_audio
from vision_bench.media.clips import cut_whole, prepare_source
from vision_bench.media.probe import probe
from vision_bench.media.scene import CutSettings, Prepared

RATE = 25
SETTINGS = CutSettings(start=Fraction(0), end=Fraction(9), length=Fraction(3), jobs=2, with_blackout=False)
MPEG2 = ("-c:v", "mpeg2video", "-b:v", "4M", "-c:a", "mp2")
JPEG = ("-c:v", "mjpeg", "-q:v", "3", "-c:a", "pcm_s16le")
RECIPES = {
    "mono.avi": JPEG,
    "two.avi": (*JPEG, "-ac", "2"),
    "pcm.mkv": ("-c:v", "libx264", "-c:a", "pcm_s16le"),
    "wmv.asf": ("-c:v", "wmv2", "-b:v", "3M", "-c:a", "wmav2"),
    "ps.mpg": (*MPEG2, "-f", "mpeg"),
    "dvd.vob": (*MPEG2, "-f", "vob"),
    "old.flv": ("-c:v", "flv1", "-b:v", "3M", "-c:a", "pcm_s16le", "-ar", "44100"),
    "plain.ts": ("-c:v", "libx264", "-c:a", "aac", "-f", "mpegts"),
    "bare.h264": ("-an", "-c:v", "libx264", "-f", "h264"),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """A folder with the numbered film, 12 s at 25 frames a second."""
    made = Workshop(tmp_path_factory.mktemp("containers"))
    write_film(made.folder / "film.mp4", constant_times(Fraction(RATE), 12))
    return made


def made_as(shop: Workshop, name: str) -> Path:
    """The film once more, by `RECIPES`."""
    path = shop.folder / name
    if not path.exists():
        shop.run("-i", shop.folder / "film.mp4", *RECIPES[name], path)
    return path


def cut(source: Path, data_dir: Path, **changes: Any) -> Prepared:
    return prepare_source(source, category="news", data_dir=data_dir, settings=replace(SETTINGS, **changes))


@pytest.mark.parametrize("encoder", ["libopenh264", "libx264"])
@pytest.mark.parametrize("name", RECIPES)
def test_every_clip_starts_at_zero_with_its_frame_and_its_sound(
    name: str, encoder: str, shop: Workshop, tmp_path: Path
) -> None:
    """The later clips too: the window's first frame is at 0.0, and each beep within 20 ms of its frame."""
    prepared = cut(made_as(shop, name), tmp_path, encoder=encoder)
    assert (prepared.made, prepared.failed) == (3, ())
    for index, clip in enumerate(prepared.paths):
        first = index * 3 * RATE
        numbers, seconds = read_numbers(clip)
        assert (numbers[0], numbers[-1], seconds[0]) == (first, first + 3 * RATE - 1, 0.0)
        if name.endswith((".h264", ".flv")):  # no sound; another rate than the beeps are read at
            continue
        due = [at / RATE for at in range(3 * RATE) if (first + at) % BEEP_EVERY == BEEP_FIRST]
        wanted = [at for at in due if 0.05 < at < 2.9]
        assert [at for at in read_beeps(clip) if 0.05 < at < 2.9] == pytest.approx(wanted, abs=0.020)


@pytest.mark.parametrize("encoder", ["libopenh264", "libx264"])
def test_frames_without_times_are_counted(encoder: str, shop: Workshop, tmp_path: Path) -> None:
    """A bare H.264 stream is cut frame by frame at its stated rate, and the run says that it had no times."""
    prepared = cut(made_as(shop, "bare.h264"), tmp_path, encoder=encoder)
    assert [read_numbers(clip)[0] for clip in prepared.paths] == [list(range(n, n + 75)) for n in (0, 75, 150)]
    assert prepared.manifest["source"]["warnings"][0].startswith("no_times: ")


def test_one_clip_that_the_library_refuses_does_not_stop_the_others(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever error it is: the clip is listed with the reason, no half file is left, the others are made."""
    write_window = cutting.write_window

    def refuse_the_second(source: Any, window: Any, *rest: Any, **more: Any) -> int:
        if window.seq == 2:
            raise av.error.ArgumentError(22, "Invalid argument")
        return write_window(source, window, *rest, **more)

    monkeypatch.setattr(cutting, "write_window", refuse_the_second)
    prepared = cut(shop.folder / "film.mp4", tmp_path, encoder="libx264")
    assert prepared.made == 2
    assert prepared.failed == ("film.mp4: 0002_0003-0006.mp4 cannot be made (Invalid argument)",)
    assert [entry["seq"] for entry in prepared.manifest["not_made"]] == [2]
    assert sorted(path.name for path in prepared.folder.iterdir()) == [
        "0001_0000-0003.mp4",
        "0003_0006-0009.mp4",
        "clips.json",
    ]


def test_a_stream_that_nothing_can_decode_is_said(shop: Workshop, tmp_path: Path) -> None:
    """An unknown picture is refused with its file and stream; beside a good picture, unknown sound is left out."""
    film = (shop.folder / "film.mp4").read_bytes()
    picture, sound = tmp_path / "picture.mp4", tmp_path / "sound.avi"
    picture.write_bytes(film.replace(b"avc1", b"zzzz"))
    with pytest.raises(InvalidMedia, match=r"picture\.mp4: no frame of picture stream 0 \(unknown\) can be decoded; "):
        cut(picture, tmp_path / "data")
    sound.write_bytes(with_unknown_sound(made_as(shop, "mono.avi").read_bytes()))
    info = probe(sound)
    assert [track.codec for track in info.audio] == ["unknown"]
    for encoder in ("libopenh264", "libx264"):
        prepared = cut(sound, tmp_path / encoder, encoder=encoder)
        assert [clip["has_audio"] for clip in prepared.manifest["clips"]] == [False] * 3


def with_unknown_sound(avi: bytes) -> bytes:
    """The same file with a format tag that stands for nothing in the sound's header."""
    at = avi.index(b"strf", avi.index(b"auds")) + 8
    return avi[:at] + b"\xfe\xca" + avi[at + 2 :]


def test_the_longest_name_is_cut_whole(shop: Workshop, tmp_path: Path) -> None:
    """253 bytes of Korean: the hash behind it still fits; one over the system's bound is simply no file."""
    film = tmp_path / ("가" * 83 + ".mkv")
    film.write_bytes((shop.folder / "film.mp4").read_bytes())
    first = cut_whole(film, data_dir=tmp_path / "data", length=Fraction(6))
    assert first.made == 2
    assert cut_whole(film, data_dir=tmp_path / "data", length=Fraction(6)).reused == 2
    longest = tmp_path / ("가" * 83 + ".mkv.x")
    longest.write_bytes(film.read_bytes())
    assert cut(longest, tmp_path / "data").made == 3
    for use in (lambda path: cut_whole(path, data_dir=tmp_path / "data"), probe):
        with pytest.raises(InvalidMedia, match="no such file"):
            use(tmp_path / ("가" * 90))


def test_a_film_that_may_not_be_read_is_said(shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name, the system's reason and what to check, whether it is probed, cut or cut whole."""

    def refuse(*arguments: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    film = shop.folder / "film.mp4"
    for use in (probe, lambda path: cut(path, tmp_path), lambda path: cut_whole(path, data_dir=tmp_path)):
        with pytest.raises(InvalidMedia, match=r"film\.mp4: cannot be read \(Permission denied\); check its rights"):
            use(film)


@pytest.mark.parametrize("encoder", ["libopenh264", "libx264"])
def test_an_interlaced_film_of_changing_rate_keeps_its_times(encoder: str, shop: Workshop, tmp_path: Path) -> None:
    """The deinterlacer counts in half ticks; the clip's frames are where the source's are."""
    source = shop.folder / "fields.mkv"
    if not source.exists():
        steps = "select='not(eq(mod(n,7),3))',setfield=tff"
        shop.run("-i", shop.folder / "film.mp4", "-an", "-vf", steps, "-fps_mode", "passthrough", *FIELDS, source)
    info = probe(source)
    assert info.video is not None and info.video.is_interlaced and not info.video.is_constant_rate
    prepared = cut(source, tmp_path, encoder=encoder)
    with av.open(str(source)) as container:
        times = [float(frame.time) for frame in container.decode(video=0)]
    for index, clip in enumerate(prepared.paths):
        inside = [time for time in times if index * 3 <= time - times[0] < index * 3 + 3]
        assert read_numbers(clip)[1] == pytest.approx([time - inside[0] for time in inside], abs=0.0011)


FIELDS = ("-c:v", "libx264", "-flags", "+ilme+ildct", "-x264-params", "tff=1")


def test_sound_that_changes_its_form_and_streams_that_begin_late_are_read(shop: Workshop, tmp_path: Path) -> None:
    """Two FLV files behind each other, 44100 Hz stereo after 44100 Hz mono: read to the end; so is a late stream."""
    one, two, silent = (tmp_path / name for name in ("one.flv", "two.flv", "silent.flv"))
    for path, more in ((one, ("-ac", "1")), (two, ("-ac", "2")), (silent, ("-an",))):
        shop.run(
            "-i", shop.folder / "film.mp4", "-t", "2", "-c:v", "flv1", "-c:a", "libmp3lame", "-ar", 44100, *more, path
        )
    header = 13
    changing = one.read_bytes() + two.read_bytes()[header:]
    samples = decode_audio(changing)
    assert samples is not None and samples.size / 16_000 == pytest.approx(4, abs=0.2)
    info = probe(silent.read_bytes() + two.read_bytes()[header:])
    assert info.video is not None and info.video.frames >= 2 * RATE
