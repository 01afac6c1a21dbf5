"""The sound of a programme, block by block, so that ten minutes need no more memory than one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vision_bench.media.broadcast.plan import SAMPLE_RATE, Mark, Programme, Scene, SpokenLine

BEEP_HZ = 1000
BEEP_SECONDS = 0.1
BEEP_PEAK = 0.5
BEEP_EDGE_SECONDS = 0.001  # a ramp this short is too soft to click and too steep to blur the start

CHORD_HZ = (220.0, 277.2, 329.6)
# A bed is well above digital silence and well below the speech.
ROOM_RMS, CROWD_RMS, CHORD_PEAK = 0.006, 0.02, 0.015
CROWD_TAPS = 24


def beep() -> NDArray[np.float32]:
    """The mark's tone: 100 ms of 1 kHz at 48 kHz, (4800,)."""
    count = round(BEEP_SECONDS * SAMPLE_RATE)
    tone = BEEP_PEAK * np.sin(2 * np.pi * BEEP_HZ * np.arange(count) / SAMPLE_RATE)
    edge = round(BEEP_EDGE_SECONDS * SAMPLE_RATE)
    ramp = np.linspace(0, 1, edge, endpoint=False)
    tone[:edge] *= ramp
    tone[-edge:] *= ramp[::-1]
    return tone.astype(np.float32)


class SoundTrack:
    """A programme's sound, to be read in any blocks of whole seconds."""

    def __init__(self, programme: Programme) -> None:
        self._programme = programme
        self._beep = beep()

    def block(self, start: int, count: int) -> NDArray[np.float32]:
        """(count,) mono samples in [-1, 1] from sample ``start`` of the file on.

        ``start`` is a whole second's first sample: the noise of the bed is drawn second by second.
        """
        sound = self._bed(start, count)
        for scene in self._programme.scenes:
            scene_start, scene_end = self._span(scene)
            if scene_end <= start or scene_start >= start + count:
                continue
            for line in scene.lines:
                _add(sound, start, line)
            if scene.is_silent:
                sound[max(0, scene_start - start) : scene_end - start] = 0
            for mark in scene.marks:
                self._put_beep(sound, start, mark)
        sound[: max(0, self._programme.first_sample(self._programme.lead_frames) - start)] = 0
        return np.clip(sound, -1, 1)

    def _span(self, scene: Scene) -> tuple[int, int]:
        return self._programme.first_sample(scene.first_frame), self._programme.first_sample(scene.end_frame)

    def _put_beep(self, sound: NDArray[np.float32], start: int, mark: Mark) -> None:
        if mark.beep:
            at = self._programme.first_sample(mark.frame) - start
            first, last = max(0, at), min(len(sound), at + len(self._beep))
            if first < last:
                sound[first:last] = self._beep[first - at : last - at]

    def _bed(self, start: int, count: int) -> NDArray[np.float32]:
        genre = self._programme.genre
        if genre.bed == "music":
            times = np.arange(start, start + count) / SAMPLE_RATE
            chord = sum(np.sin(2 * np.pi * hertz * times) for hertz in CHORD_HZ)
            return np.asarray(chord * CHORD_PEAK, np.float32)
        rng = np.random.default_rng((self._programme.seed & 0xFFFFFFFF, genre.number, start))
        noise = rng.standard_normal(count + CROWD_TAPS - 1, dtype=np.float32)
        if genre.bed == "room":
            return noise[:count] * np.float32(ROOM_RMS)
        # A crowd: noise with its treble averaged away, swelling every seven seconds.
        murmur = np.convolve(noise, np.full(CROWD_TAPS, CROWD_TAPS**-0.5, np.float32), "valid")
        swell = 1 + 0.5 * np.sin(2 * np.pi * np.arange(start, start + count) / (7 * SAMPLE_RATE))
        return np.asarray(murmur * swell * CROWD_RMS, np.float32)


def _add(sound: NDArray[np.float32], start: int, line: SpokenLine) -> None:
    at = line.start_sample - start
    first, last = max(0, at), min(len(sound), at + len(line.samples))
    if first < last:
        sound[first:last] += line.samples[first - at : last - at] * np.float32(1 / 32768)
