"""The sound of a programme."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.media.broadcast.rig import hummed

from vision_bench.media.broadcast.check import find_beeps
from vision_bench.media.broadcast.plan import SAMPLE_RATE, Programme
from vision_bench.media.broadcast.sound import SoundTrack, beep


def _whole(programme: Programme) -> np.ndarray:
    track = SoundTrack(programme)
    starts = range(0, programme.sample_count, SAMPLE_RATE)
    return np.concatenate([track.block(at, min(SAMPLE_RATE, programme.sample_count - at)) for at in starts])


@pytest.mark.parametrize("genre", ["news", "drama", "baseball"])
def test_silence_is_digital_and_everything_else_is_not(genre: str) -> None:
    """Silent scenes are exact zeros; every other half second is louder than -50 dB, so no bed passes for silence."""
    programme = hummed(genre, seconds=60)
    sound = _whole(programme)
    for scene in programme.scenes:
        part = sound[programme.first_sample(scene.first_frame) : programme.first_sample(scene.end_frame)]
        if scene.is_silent:
            assert not part.any()
        else:
            halves = [
                part[at : at + SAMPLE_RATE // 2] for at in range(0, len(part) - SAMPLE_RATE // 2, SAMPLE_RATE // 2)
            ]
            assert min(np.sqrt(np.mean(half**2)) for half in halves) > 10 ** (-50 / 20)


def test_the_lead_is_silent() -> None:
    """Nothing sounds before the programme's first frame."""
    programme = hummed("baseball", seconds=6, lead=2.5)
    sound = _whole(programme)
    first = programme.first_sample(programme.lead_frames)
    assert not sound[:first].any()
    assert sound[first : first + SAMPLE_RATE].any()


def test_beeps_are_where_their_frames_are() -> None:
    """Every beep of the plan is found, within a millisecond of its frame, and nothing else is taken for one."""
    programme = hummed("baseball", seconds=60)
    wanted = [float(mark.frame / programme.genre.fps) for mark in programme.marks if mark.beep]
    assert len(wanted) > 5
    assert find_beeps(_whole(programme), SAMPLE_RATE) == pytest.approx(wanted, abs=0.001)


def test_a_beep_across_a_blocks_edge_is_found_once() -> None:
    """The listener works in blocks of 60 s; a tone that lies across the edge is one tone."""
    sound = np.zeros(61 * SAMPLE_RATE, np.float32)
    at = 60 * SAMPLE_RATE - 2000
    sound[at : at + 4800] = beep()
    assert find_beeps(sound, SAMPLE_RATE) == pytest.approx([at / SAMPLE_RATE], abs=0.001)


def test_other_tones_and_noise_are_no_beeps() -> None:
    """Neither 900 Hz, nor loud noise, nor a sound too short to hold a beep counts."""
    times = np.arange(SAMPLE_RATE) / SAMPLE_RATE
    noise = np.random.default_rng(1).standard_normal(SAMPLE_RATE).astype(np.float32) * 0.3
    assert find_beeps((np.sin(2 * np.pi * 900 * times) * 0.5).astype(np.float32), SAMPLE_RATE) == []
    assert find_beeps(noise, SAMPLE_RATE) == []
    assert find_beeps(np.zeros(100, np.float32), SAMPLE_RATE) == []
