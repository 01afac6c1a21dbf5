"""What is measured in a sound, with a stand-in for the voice detector."""

from __future__ import annotations

import numpy as np
import pytest

from vision_bench.engine.chat.perception.sound import RATE, SoundFacts, Span, block_levels, find_beeps, listen

SILENCE = np.zeros(6 * RATE, np.float32)


def noise(seconds: float, level: float, *, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (level * rng.standard_normal(round(seconds * RATE))).astype(np.float32)


def with_tone(
    samples: np.ndarray, at: float, seconds: float, *, hertz: float = 1000.0, level: float = 0.4
) -> np.ndarray:
    """The sound with a sine laid over it."""
    start, count = round(at * RATE), round(seconds * RATE)
    mixed = samples.copy()
    mixed[start : start + count] += level * np.sin(2 * np.pi * hertz * np.arange(count) / RATE).astype(np.float32)
    return mixed


def loud_is_voice(block: np.ndarray) -> float:
    """A stand-in: speech is whatever is louder than a tenth of full scale."""
    return float(np.abs(block).max() > 0.1)


def heard(samples: np.ndarray) -> SoundFacts:
    return listen(samples, voice=loud_is_voice)


def test_digital_silence_has_no_level() -> None:
    """Six seconds of zeros: silent for six, loudness and peak None, nothing heard."""
    facts = heard(SILENCE)
    assert facts.is_silent and facts.silent_seconds == pytest.approx(6.0)
    assert facts.loudness_dbfs is None and facts.peak_dbfs is None
    assert facts.speech == () and facts.beep_seconds == ()


def test_loudness_is_power_against_full_scale() -> None:
    """A sine of peak 0.5 is 3 dB below its peak: -9.03 and -6.02 dBFS."""
    facts = heard(with_tone(SILENCE, 0.0, 6.0, hertz=300, level=0.5))
    assert facts.loudness_dbfs == pytest.approx(-9.03, abs=0.01)
    assert facts.peak_dbfs == pytest.approx(-6.02, abs=0.01)


def test_quiet_rooms_are_not_silent() -> None:
    """Noise at -54 dBFS is a room, at -66 dBFS silence."""
    assert heard(noise(2, 10 ** (-54 / 20))).silent_seconds == 0.0
    assert heard(noise(2, 10 ** (-66 / 20))).silent_seconds == pytest.approx(2.0)


def test_a_pause_counts_from_a_tenth_of_a_second() -> None:
    """Gaps of 60 ms belong to the sound around them, gaps of half a second are silence."""
    samples = noise(3, 0.05)
    samples[RATE : RATE + round(0.06 * RATE)] = 0
    samples[2 * RATE : round(2.5 * RATE)] = 0
    assert heard(samples).silent_seconds == pytest.approx(0.5, abs=0.021)


@pytest.mark.parametrize("seconds", [0.05, 0.06, 0.1, 0.5])
@pytest.mark.parametrize("bed", [0.0, 0.01, 0.03])
def test_a_beep_is_found_where_it_starts(seconds: float, bed: float) -> None:
    """From 50 ms on, in quiet and in a crowd, to 20 ms."""
    found = find_beeps(with_tone(noise(3, bed), 1.234, seconds))
    assert found == [pytest.approx(1.234, abs=0.02)]


def test_beeps_are_counted_one_by_one() -> None:
    """Three beeps 0.8 s apart are three; a tone that stops for 20 ms is one."""
    samples = SILENCE
    for at in (0.5, 1.3, 2.1):
        samples = with_tone(samples, at, 0.1)
    assert find_beeps(samples) == pytest.approx([0.5, 1.3, 2.1], abs=0.02)
    assert len(find_beeps(with_tone(with_tone(SILENCE, 1.0, 0.2), 1.22, 0.2))) == 1


@pytest.mark.parametrize("hertz", [440, 880, 1150, 1500, 2000])
def test_other_tones_are_no_beeps(hertz: int) -> None:
    """Only what lies around 1 kHz counts."""
    assert find_beeps(with_tone(SILENCE, 1.0, 0.5, hertz=hertz)) == []


def test_clicks_faint_tones_and_noise_are_no_beeps() -> None:
    """20 ms are too short, -50 dBFS is too faint, and noise holds no tone."""
    assert find_beeps(with_tone(SILENCE, 1.0, 0.02)) == []
    assert find_beeps(with_tone(SILENCE, 1.0, 0.3, level=0.003)) == []
    assert find_beeps(noise(3, 0.2)) == []
    assert find_beeps(np.zeros(100, np.float32)) == []


def test_speech_is_joined_over_short_pauses() -> None:
    """Pauses of 0.2 s belong to speech, 0.5 s part it, and a burst of 0.1 s is none."""
    samples = noise(6, 0.01)
    for start, end in ((0.5, 1.0), (1.2, 2.0), (2.5, 3.0), (4.0, 4.1)):
        samples[round(start * RATE) : round(end * RATE)] = 0.4
    facts = heard(samples)
    assert [(span.start, span.end) for span in facts.speech] == [
        (pytest.approx(0.5, abs=0.04), pytest.approx(2.0, abs=0.04)),
        (pytest.approx(2.5, abs=0.04), pytest.approx(3.0, abs=0.04)),
    ]
    assert facts.speech_seconds == pytest.approx(2.0, abs=0.1)


def test_silence_is_not_put_to_the_voice_detector() -> None:
    """Blocks below the silence level cost nothing and are no speech."""
    asked: list[int] = []

    def voice(block: np.ndarray) -> float:
        asked.append(len(block))
        return 0.0

    listen(np.concatenate([SILENCE, noise(1, 0.1)]), voice=voice)
    assert set(asked) == {512} and len(asked) == pytest.approx(31, abs=1)


def test_a_last_part_block_is_measured_as_it_is() -> None:
    """30 ms at one level are two blocks of that level, though the second is half full."""
    levels = block_levels(np.full(480, 0.1, np.float32))
    assert levels == pytest.approx([-20.0, -20.0], abs=1e-6)


def test_no_samples_are_no_sound() -> None:
    """An empty track is silent for no time, and nothing divides by zero."""
    facts = heard(np.zeros(0, np.float32))
    assert facts.duration_seconds == 0.0 and facts.loudness_dbfs is None and facts.speech == ()


def test_spans_add_up() -> None:
    """Speech seconds are the sum of its spans."""
    facts = SoundFacts(6.0, 0.0, -20.0, -3.0, (), (Span(0.5, 1.5), Span(2.0, 2.25)))
    assert facts.speech_seconds == 1.25
