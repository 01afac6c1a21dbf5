"""What is done to media before they are sent."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image
from tests.integration.tiny_clips import tiny_clip

from vision_bench.bench.chat.clips import find_clips
from vision_bench.bench.chat.forms import Form
from vision_bench.media.audio import decode_audio
from vision_bench.media.probe import probe


def test_a_plain_form_changes_nothing() -> None:
    """The bytes themselves."""
    clip = tiny_clip()
    assert Form().is_plain and Form().film(clip, "it") is clip and Form().picture(clip, "image/png") is clip


def test_muted_is_silence_where_there_is_sound() -> None:
    """A clip without a track has nothing to mute, and stays in the set."""
    sound = decode_audio(Form(control="muted").film(tiny_clip(), "it"), rate=16_000)
    assert sound is not None and np.abs(sound).max() < 1e-3
    silent = tiny_clip(has_audio=False)
    assert Form(control="muted").film(silent, "it") == silent


def test_a_film_is_made_once_for_a_form(tmp_path: Path) -> None:
    """The next one comes from the folder; another form, or another clip, is another film; a plain one is not kept."""
    clip = tiny_clip()
    made = Form(height=32).kept_film(clip, "it", tmp_path)
    (kept,) = tmp_path.iterdir()
    assert kept.read_bytes() == made != clip
    kept.write_bytes(b"kept")
    assert Form(height=32).kept_film(clip, "it", tmp_path) == b"kept"
    assert Form(height=48).kept_film(clip, "it", tmp_path) != b"kept"
    assert Form().kept_film(clip, "it", tmp_path) is clip and len(list(tmp_path.iterdir())) == 2


def test_frames_and_sound_that_are_sent_apart() -> None:
    """Lines, length and controls as for a whole film."""
    frames = np.full((2, 40, 60, 3), 200, np.uint8)
    assert Form(height=20).frames(frames).shape == (2, 20, 30, 3)
    assert Form(height=90).frames(frames) is frames
    assert Form(control="blackout").frames(frames).max() == 0
    assert Form(control="muted").frames(frames) is frames
    samples = np.ones(16_000, np.float32)
    assert len(Form(seconds=0.25).sound(samples, 16_000)) == 4000
    assert Form(control="muted").sound(samples, 16_000).max() == 0 and Form().sound(None, 16_000) is None


def test_clips_are_found_in_their_form(tmp_path: Path) -> None:
    """A film's bytes, a picture's bytes, and frames that are chosen and formed one by one; read anew, the same."""
    (tmp_path / "a.mp4").write_bytes(tiny_clip())
    small = Form(height=32, seconds=0.5)
    (film,) = find_clips(tmp_path, "video", fps=None, num_frames=None, use_audio=True, form=small).clips
    track = probe(film.data, name="a").video
    assert track is not None and (track.height, track.frames) == (32, 4) and film.select() == film.data
    (frames,) = find_clips(tmp_path, "frames", fps=None, num_frames=8, use_audio=False, form=small).clips
    assert frames.indices == (0, 1, 2, 3) and frames.select()[0].shape == (4, 32, 32, 3)
    Image.new("RGB", (60, 40), (250, 10, 10)).save(tmp_path / "b.png")
    (picture,) = find_clips(tmp_path / "b.png", "image", fps=None, num_frames=None, use_audio=False, form=small).clips
    assert Image.open(io.BytesIO(picture.data)).size == (48, 32)


def test_pictures() -> None:
    """Fewer lines, or black, in the format that they had."""
    data = io.BytesIO()
    Image.new("RGB", (60, 40), (250, 10, 10)).save(data, "PNG")
    small = Image.open(io.BytesIO(Form(height=20).picture(data.getvalue(), "image/png")))
    assert (small.size, small.format) == ((30, 20), "PNG")
    black = Image.open(io.BytesIO(Form(control="blackout").picture(data.getvalue(), "image/jpeg")))
    assert (black.size, black.format, np.asarray(black).max()) == ((60, 40), "JPEG", 0)
    assert Form(height=20, seconds=3, control="muted").words() == "20 lines, first 3 s, muted"
