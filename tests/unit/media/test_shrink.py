"""Clips with fewer lines, a shorter length, a black picture."""

from __future__ import annotations

import numpy as np
import pytest
from tests.integration.tiny_clips import tiny_clip

from vision_bench.errors import InvalidMedia
from vision_bench.media.audio import decode_audio
from vision_bench.media.frames import decode_frames
from vision_bench.media.probe import probe
from vision_bench.media.shrink import shrink


def test_fewer_lines_leave_frames_times_and_sound() -> None:
    """Only the size of the picture differs; the sound is the same to the sample."""
    clip = tiny_clip(size=64)
    small = shrink(clip, height=32, name="it")
    before, after = probe(clip, name="it"), probe(small, name="it")
    assert before.video is not None and after.video is not None
    assert (after.video.width, after.video.height, after.video.frames) == (32, 32, before.video.frames)
    assert np.array_equal(decode_frames(clip).pts_seconds, decode_frames(small).pts_seconds)
    heard, kept = decode_audio(clip, rate=16_000), decode_audio(small, rate=16_000)
    assert heard is not None and kept is not None and np.array_equal(heard, kept)


def test_nothing_to_do_gives_the_clip_itself() -> None:
    """Never enlarged, never made longer, not encoded for nothing."""
    clip = tiny_clip(size=64)
    assert shrink(clip, height=64, name="it") is clip and shrink(clip, height=480, seconds=9, name="it") is clip


def test_the_first_seconds_of_picture_and_sound() -> None:
    """Half of a second at eight frames a second is four frames; sound ends with the packet that began in time."""
    short = shrink(tiny_clip(seconds=1), seconds=0.5, name="it")
    info = probe(short, name="it")
    assert info.video is not None and info.video.frames == 4
    sound = decode_audio(short, rate=16_000)
    assert sound is not None and 0.4 <= len(sound) / 16_000 <= 0.65


def test_a_black_picture_keeps_the_sound() -> None:
    """Every frame is there, and every one is black."""
    clip = tiny_clip()
    black = shrink(clip, is_black=True, name="it")
    frames = decode_frames(black).frames
    assert len(frames) == 8 and frames.max() <= 2
    heard, kept = decode_audio(clip, rate=16_000), decode_audio(black, rate=16_000)
    assert heard is not None and kept is not None and np.array_equal(heard, kept)


def test_what_is_no_video_is_refused() -> None:
    """By name."""
    with pytest.raises(InvalidMedia, match="it: not a video"):
        shrink(b"nothing", height=32, name="it")
