"""Decoding sound."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.media.drawn_clips import RATE, drawn_clip, ramp, tone

from vision_bench.errors import InvalidMedia
from vision_bench.media.audio import decode_audio
from vision_bench.media.encode import wav


def _hertz(samples: np.ndarray, rate: int) -> float:
    spectrum = np.abs(np.fft.rfft(samples))
    return float(np.fft.rfftfreq(len(samples), 1 / rate)[spectrum.argmax()])


def test_a_clip_s_tone_comes_back() -> None:
    """One second of 500 Hz through AAC: as long, as high and as loud as it was."""
    samples = decode_audio(drawn_clip(ramp(24), samples=tone(500, 1.0)))
    assert samples is not None and samples.dtype == np.float32 and samples.ndim == 1
    assert len(samples) == pytest.approx(RATE, abs=1100)
    middle = samples[2000:14_000]
    assert _hertz(middle, RATE) == pytest.approx(500, abs=3)
    assert np.abs(middle).max() == pytest.approx(0.3, abs=0.03)


def test_another_rate_is_made() -> None:
    """A WAV at 44.1 kHz read at 16 kHz keeps its length and pitch."""
    high = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(44_100) / 44_100)
    samples = decode_audio(wav(high.astype(np.float32), 44_100), rate=16_000)
    assert samples is not None and len(samples) == pytest.approx(16_000, abs=40)
    assert _hertz(samples, 16_000) == pytest.approx(1000, abs=3)


def test_no_track_is_none() -> None:
    """A clip without a sound track has no sound: None, not silence."""
    assert decode_audio(drawn_clip(ramp(6))) is None


def test_samples_stay_in_range() -> None:
    """A square wave at full scale rings above it in the codec, and is held to [-1, 1]."""
    square = np.sign(tone(300, 0.5)).astype(np.float32)
    samples = decode_audio(drawn_clip(ramp(12), samples=square))
    assert samples is not None and np.abs(samples).max() <= 1.0


def test_noise_is_no_media() -> None:
    """Bytes that are no file raise, and an empty file does."""
    with pytest.raises(InvalidMedia):
        decode_audio(b"nothing of the kind" * 50)
    with pytest.raises(InvalidMedia):
        decode_audio(b"")
