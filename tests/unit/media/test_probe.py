"""What a file holds, from its packets: facts that a header could not give, and errors that say what to do."""

from __future__ import annotations

import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from vision_bench.errors import InvalidMedia
from vision_bench.media.probe import inspect_media, probe
from vision_bench.media.tracks import require_picture


def film(
    *, frames: int = 10, rate: int = 10, container: str = "mp4", size: tuple[int, int] = (64, 48), first: int = 0
) -> bytes:
    """A picture track alone, in memory; its first frame is number ``first`` on the clock."""
    target = io.BytesIO()
    with av.open(target, "w", format=container) as out:
        stream: Any = out.add_stream("libx264", rate=rate, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for number in range(frames):
            picture = np.full((size[1], size[0], 3), number * 20 % 255, np.uint8)
            frame = av.VideoFrame.from_ndarray(picture, "rgb24")
            frame.pts, frame.time_base = first + number, Fraction(1, rate)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return target.getvalue()


def song(*, rate: int = 16_000, seconds: float = 0.5) -> bytes:
    """A sound track alone."""
    target = io.BytesIO()
    with av.open(target, "w", format="mp4") as out:
        stream: Any = out.add_stream("aac", rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, round(rate * seconds)), np.float32), "fltp", "mono")
        frame.sample_rate = rate
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return target.getvalue()


def test_facts_of_a_plain_film() -> None:
    """Ten frames at ten a second: one second, constant, no sound."""
    info = probe(film())
    video = info.video
    assert video is not None
    assert (video.codec, video.width, video.height, video.pix_fmt) == ("h264", 64, 48, "yuv420p")
    assert (video.frames, video.fps, video.is_constant_rate) == (10, Fraction(10), True)
    assert (video.duration_seconds, video.rotation, video.is_interlaced) == (1.0, 0, False)
    assert not info.has_audio
    assert info.warnings == ()


def test_bytes_and_file_give_the_same_facts(tmp_path: Path) -> None:
    """A payload of a request is probed as the file is."""
    path = tmp_path / "a.mp4"
    path.write_bytes(film())
    assert probe(path) == probe(path.read_bytes(), name="a.mp4")


def test_frames_are_counted_not_read_from_the_header() -> None:
    """The last part of the bytes is missing: the header still claims ten frames, and the report says so."""
    index_in_front = film_with_index_in_front(40)
    info = probe(index_in_front[: int(len(index_in_front) * 0.8)], name="cut.mp4")
    assert info.video is not None and 0 < info.video.frames < 40
    assert any(text.startswith("truncated: the header claims 40 frames") for text in info.warnings)
    assert probe(index_in_front).warnings == ()


def film_with_index_in_front(frames: int) -> bytes:
    """Moves the index box to the front and corrects its one table of places."""
    data = film(frames=frames)
    at, sizes = 0, {}
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        sizes[data[at + 4 : at + 8]] = (at, size)
        at += size
    start, length = sizes[b"moov"]
    moov = bytearray(data[start : start + length])
    table = moov.index(b"stco") + 8
    for entry in range(int.from_bytes(moov[table : table + 4], "big")):
        place = table + 4 + 4 * entry
        moov[place : place + 4] = (int.from_bytes(moov[place : place + 4], "big") + length).to_bytes(4, "big")
    head = data[: sizes[b"ftyp"][1]]
    return bytes(head + moov + data[len(head) : start])


def test_sound_alone_is_media_but_no_film() -> None:
    """The probe tells its tracks; who needs a picture is told what there is instead."""
    info = probe(song(), name="song.m4a")
    assert info.video is None and info.has_audio
    assert (info.audio[0].codec, info.audio[0].sample_rate, info.audio[0].channels) == ("aac", 16_000, 1)
    with pytest.raises(InvalidMedia, match=r"song\.m4a: no picture track, only 1 sound track; give a file with a"):
        require_picture(info)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "GIF", "WEBP"])
def test_a_still_picture_is_refused_under_any_name(kind: str) -> None:
    """Named as what it is, with the remedy."""
    target = io.BytesIO()
    Image.new("RGB", (32, 32), "red").save(target, kind)
    with pytest.raises(InvalidMedia, match=r"clip\.mp4: a still picture.*; a picture is not a film; give a video file"):
        probe(target.getvalue(), name="clip.mp4")


def test_an_empty_and_a_missing_file_are_told_apart(tmp_path: Path) -> None:
    """Each says what to do or where it looked."""
    (tmp_path / "empty.mp4").touch()
    with pytest.raises(InvalidMedia, match=r"empty\.mp4: the file is empty \(0 bytes\); copy or record it again"):
        probe(tmp_path / "empty.mp4")
    with pytest.raises(InvalidMedia, match=r"none\.mp4: no such file; looked at /"):
        probe(tmp_path / "none.mp4")


@pytest.mark.parametrize(
    "text",
    [
        "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n{other}\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile {other}\n",
        "<html>403</html>",
    ],
)
def test_a_play_list_never_opens_another_file(text: str, tmp_path: Path) -> None:
    """A list under a video name may not make us read what it names."""
    (tmp_path / "secret.mp4").write_bytes(film())
    listed = tmp_path / "clip.mp4"
    listed.write_text(text.format(other=tmp_path / "secret.mp4"))
    with pytest.raises(InvalidMedia, match=r"clip\.mp4: "):
        probe(listed)


def test_times_of_an_offset_clock_are_kept_and_measured_from_the_first_frame() -> None:
    """A transport stream whose clock starts at 100 s; its first frame is 0 for cutting."""
    info, times, _ = inspect_media(film(container="mpegts", first=1000), name="a.ts")
    assert info.video is not None and times is not None
    assert info.video.start_seconds == pytest.approx(100)
    assert times.start_of(0) == 0
    assert times.rate == 10
    assert info.video.duration_seconds == 1.0


def test_each_sound_packet_has_its_time() -> None:
    """Ascending, as many as the track counts."""
    info, times, heard = inspect_media(song(), name="song.m4a")
    assert times is None
    assert len(heard[0]) == info.audio[0].packets
    assert heard[0] == sorted(heard[0])
