"""Decoding chosen frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.unit.media.drawn_clips import drawn_clip, number_of, ramp, tone

from vision_bench.errors import InvalidMedia, InvalidRequest
from vision_bench.media.encode import wav
from vision_bench.media.frames import decode_frames, fit_pixels

B_FRAMES = {"preset": "veryfast", "qp": "12", "bf": "3", "x264-params": "b-adapt=0:scenecut=0"}


@pytest.fixture(scope="module")
def clip() -> bytes:
    """24 numbered frames at 24 a second, with frames that no other frame refers to."""
    return drawn_clip(ramp(24), options=B_FRAMES)


def test_all_frames_come_in_the_order_shown(clip: bytes) -> None:
    """Nothing chosen: every frame once, at its time."""
    frames, pts_seconds = decode_frames(clip)
    assert [number_of(frame) for frame in frames] == list(range(24))
    assert frames.dtype == np.uint8 and frames.shape == (24, 48, 64, 3)
    assert pts_seconds == pytest.approx(np.arange(24) / 24)


def test_chosen_frames_are_those_of_a_full_decode(clip: bytes) -> None:
    """Leaving frames undecoded changes no pixel of the others, B frames or not."""
    whole = decode_frames(clip).frames
    for chosen in ([0], [1], [5, 6, 7], [23], [0, 11, 22], [2, 4, 8, 16]):
        assert np.array_equal(decode_frames(clip, indices=chosen).frames, whole[chosen])


def test_negative_indices_count_from_the_end(clip: bytes) -> None:
    """-1 is the last frame; frames come in the order shown, each once."""
    assert [number_of(frame) for frame in decode_frames(clip, indices=[-1, 3, 0, 3]).frames] == [0, 3, 23]


def test_a_rate_samples_like_the_served_model(clip: bytes) -> None:
    """One second at 2 frames a second is held to four frames, from the first to the last."""
    frames, pts_seconds = decode_frames(clip, fps=2.0)
    assert [number_of(frame) for frame in frames] == [0, 8, 15, 23]
    assert pts_seconds == pytest.approx([0, 8 / 24, 15 / 24, 23 / 24])


def test_pixels_are_bounded(clip: bytes) -> None:
    """A frame of 64x48 in 768 pixels is 32x24."""
    assert decode_frames(clip, indices=[4], max_pixels=768).frames.shape == (1, 24, 32, 3)
    assert fit_pixels(1280, 720, 786_432) == (1182, 665)
    assert fit_pixels(64, 48, None) == (64, 48)
    with pytest.raises(InvalidRequest, match="max_pixels is 0"):
        fit_pixels(64, 48, 0)


@pytest.mark.parametrize(("turn", "side"), [(None, "top"), (90, "left"), (180, "bottom"), (-90, "right")])
def test_frames_stand_upright(turn: int | None, side: str) -> None:
    """A band along the top of the coded picture lands where the display matrix turns it."""
    picture = np.zeros((48, 64, 3), np.uint8)
    picture[:12] = 250
    frame = decode_frames(drawn_clip([picture] * 3, turn=turn), indices=[1]).frames[0]
    assert frame.shape[:2] == ((64, 48) if turn in (90, -90) else (48, 64))
    bands = {"top": frame[:8], "bottom": frame[-8:], "left": frame[:, :8], "right": frame[:, -8:]}
    assert max(bands, key=lambda name: bands[name].mean()) == side
    assert bands[side].mean() > 200


def test_a_truncated_file_gives_what_is_there() -> None:
    """Two thirds of a transport stream still show the first frames, right and in order."""
    whole = drawn_clip(ramp(24), container="mpegts", options={"preset": "ultrafast", "qp": "12", "g": "6"})
    frames = decode_frames(whole[: len(whole) * 2 // 3]).frames
    numbers = [number_of(frame) for frame in frames]
    assert 4 <= len(numbers) < 24
    assert numbers[:4] == [0, 1, 2, 3]


def test_nothing_decodable_is_an_error(tmp_path: Path) -> None:
    """Noise, no data, sound alone and a missing file each say what they are."""
    with pytest.raises(InvalidMedia):
        decode_frames(b"\0" * 4000)
    with pytest.raises(InvalidMedia, match="empty"):
        decode_frames(b"")
    with pytest.raises(InvalidMedia, match="no picture track"):
        decode_frames(wav(tone(440, 0.5), 16_000))
    with pytest.raises(InvalidMedia, match=r"gone\.mp4: no such file"):
        decode_frames(tmp_path / "gone.mp4")


def test_wrong_requests_name_the_mistake(clip: bytes) -> None:
    """An index outside the clip, and indices together with a rate."""
    with pytest.raises(InvalidRequest, match="24 frames, numbered from 0; there is no frame 24"):
        decode_frames(clip, indices=[24])
    with pytest.raises(InvalidRequest, match="not both"):
        decode_frames(clip, indices=[0], fps=2.0)


def test_a_path_and_its_bytes_give_the_same(clip: bytes, tmp_path: Path) -> None:
    """A name that looks like a protocol or an option is only a name."""
    path = tmp_path / "-x http:a%20.mp4"
    path.write_bytes(clip)
    assert np.array_equal(decode_frames(path, indices=[7]).frames, decode_frames(clip, indices=[7]).frames)
