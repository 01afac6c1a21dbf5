"""What is done to media before they are sent."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image
from tests.integration.tiny_clips import tiny_clip

from vision_bench.bench.chat.forms import Form
from vision_bench.media.audio import decode_audio


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


def test_pictures() -> None:
    """Fewer lines, or black, in the format that they had."""
    data = io.BytesIO()
    Image.new("RGB", (60, 40), (250, 10, 10)).save(data, "PNG")
    small = Image.open(io.BytesIO(Form(height=20).picture(data.getvalue(), "image/png")))
    assert (small.size, small.format) == ((30, 20), "PNG")
    black = Image.open(io.BytesIO(Form(control="blackout").picture(data.getvalue(), "image/jpeg")))
    assert (black.size, black.format, np.asarray(black).max()) == ((60, 40), "JPEG", 0)
    assert Form(height=20, seconds=3, control="muted").words() == "20 lines, first 3 s, muted"
