"""Bytes that leave: data URIs, JPEG, WAV, thumbnails."""

from __future__ import annotations

import base64
import io
import wave
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.unit.media.drawn_clips import drawn_clip, ramp

from vision_bench.errors import InvalidMedia, InvalidRequest
from vision_bench.media.encode import data_uri, jpeg, thumbnail, wav


def test_a_data_uri_has_the_form_that_every_server_reads() -> None:
    """No parameters, lower-case base64, the standard alphabet with padding, no line breaks, at any length."""
    data = bytes(range(256)) * 40 + b"\xff"
    head, _, payload = data_uri(data, "video/mp4").partition(",")
    assert head == "data:video/mp4;base64"
    assert set(payload) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
    assert len(payload) % 4 == 0 and payload.endswith("=")
    assert base64.b64decode(payload, validate=True) == data


@pytest.mark.parametrize("media_type", ["mp4", "video/mp4;codecs=avc1", "video /mp4", "a/b/c", "video/mp4,x"])
def test_a_media_type_with_anything_more_is_refused(media_type: str) -> None:
    """Parameters and blanks are what servers trip over."""
    with pytest.raises(InvalidRequest, match="media type"):
        data_uri(b"x", media_type)


def test_a_jpeg_shows_the_frame() -> None:
    """Red above blue stays red above blue, and quality changes the size."""
    frame = np.zeros((64, 64, 3), np.uint8)
    frame[:32, :, 0] = frame[32:, :, 2] = 220
    image = Image.open(io.BytesIO(jpeg(frame)))
    assert image.size == (64, 64) and image.format == "JPEG"
    assert image.getpixel((32, 10))[0] > 200 and image.getpixel((32, 55))[2] > 200
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3), np.uint8)
    assert len(jpeg(noise, quality=30)) < len(jpeg(noise, quality=95))


def test_a_wav_holds_the_samples() -> None:
    """16 bits, one channel, the rate given; too loud samples are clipped, not wrapped."""
    with wave.open(io.BytesIO(wav(np.array([0.0, 0.5, -1.0, 3.0], np.float32), 16_000))) as sound:
        assert (sound.getnchannels(), sound.getsampwidth(), sound.getframerate()) == (1, 2, 16_000)
        assert np.frombuffer(sound.readframes(4), "<i2").tolist() == [0, 16384, -32767, 32767]
    with pytest.raises(InvalidRequest, match="one channel"):
        wav(np.zeros((2, 10), np.float32), 16_000)


def test_a_thumbnail_is_small_and_not_black(tmp_path: Path) -> None:
    """The first frame shrunk to the width asked for; the middle one when the first is black."""
    path = tmp_path / "clip.mp4"
    path.write_bytes(drawn_clip(ramp(12)))
    image = Image.open(io.BytesIO(thumbnail(path, width=32)))
    assert image.size == (32, 24)
    assert np.asarray(image).mean() == pytest.approx(70, abs=4)  # frame 6, since frame 0 is nearly black
    path.write_bytes(drawn_clip(ramp(12)[3:]))
    assert np.asarray(Image.open(io.BytesIO(thumbnail(path)))).mean() == pytest.approx(40, abs=4)


def test_a_black_clip_still_has_a_thumbnail(tmp_path: Path) -> None:
    """There is nothing better to show."""
    path = tmp_path / "black.mp4"
    path.write_bytes(drawn_clip([np.zeros((48, 64, 3), np.uint8)] * 4))
    assert np.asarray(Image.open(io.BytesIO(thumbnail(path)))).mean() < 8


def test_no_thumbnail_of_nothing(tmp_path: Path) -> None:
    """A file that shows nothing raises, and so does a width of nothing."""
    path = tmp_path / "page.mp4"
    path.write_text("<html>403</html>")
    with pytest.raises(InvalidMedia):
        thumbnail(path)
    with pytest.raises(InvalidRequest, match="width 0"):
        thumbnail(path, width=0)
