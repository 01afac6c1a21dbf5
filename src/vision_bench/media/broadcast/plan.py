"""The programme: which scene runs from which frame to which, what is said, shown, flashed and beeped in it.

Everything here follows from genre, seed, length and lead; nothing is drawn or encoded yet. All frame numbers are those
of the finished file, lead included.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vision_bench.errors import InvalidRequest
from vision_bench.media.broadcast.fonts import FontBook
from vision_bench.media.broadcast.genres import WINDOW_SECONDS, Genre
from vision_bench.media.broadcast.overlay import Box, place_title
from vision_bench.media.broadcast.script import Line, SceneScript, Title, new_game, write_scene
from vision_bench.media.broadcast.shapes import ShapeGroup, choose_shapes
from vision_bench.media.broadcast.speech import Speaker

SAMPLE_RATE = 48000

Kind = Literal["normal", "frozen", "black", "silent", "black_silent"]
# Scenes go round this list, so that eight scenes show every kind of passage.
KINDS: tuple[Kind, ...] = ("normal", "normal", "frozen", "black", "normal", "silent", "normal", "black_silent")
PASSAGE_SECONDS = (2.5, 4.5)  # how long a frozen or black passage lasts
SHORTEST_SCENE_SECONDS = 1.5
EDGE_EVERY = 4  # every fourth cut falls exactly on a window's edge

BACKGROUNDS = {"slate": 58, "stone": 92, "ash": 74, "dusk": 46, "fog": 112}  # name: mean luma

MARK_MARGIN_SECONDS = 0.6  # between a mark and its scene's edges
MARK_GAP_SECONDS = 0.8  # between two marks


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """A line with its sound: ``samples`` (N,) int16 at 48 kHz from ``start_sample`` of the file."""

    line: Line
    start_sample: int
    samples: NDArray[np.int16]

    @property
    def start_seconds(self) -> float:
        return self.start_sample / SAMPLE_RATE

    @property
    def end_seconds(self) -> float:
        return (self.start_sample + len(self.samples)) / SAMPLE_RATE


@dataclass(frozen=True, slots=True)
class ShownTitle:
    """A title with its patch: luma (height, width), seen from ``first_frame`` up to before ``end_frame``."""

    title: Title
    box: Box
    patch: NDArray[np.uint8]
    first_frame: int
    end_frame: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A tenth of a second of white picture, of 1 kHz tone, or of both starting together."""

    frame: int
    flash: bool
    beep: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene, from ``first_frame`` up to before ``end_frame``. ``pan`` is pixels a frame, + to the right."""

    number: int
    kind: Kind
    first_frame: int
    end_frame: int
    background: str
    pan: int
    groups: tuple[ShapeGroup, ...]
    titles: tuple[ShownTitle, ...]
    lines: tuple[SpokenLine, ...]
    marks: tuple[Mark, ...]
    score: dict[str, int | str] | None

    @property
    def is_black(self) -> bool:
        return self.kind in ("black", "black_silent")

    @property
    def is_silent(self) -> bool:
        return self.kind in ("silent", "black_silent")


@dataclass(frozen=True, slots=True)
class Programme:
    """A whole broadcast, ready to be drawn."""

    genre: Genre
    seed: int
    lead_seconds: float
    lead_frames: int
    frames: int
    """All frames of the file, lead included."""
    has_stamp: bool
    speaker: str | None
    font: str
    scenes: tuple[Scene, ...]

    @property
    def marks(self) -> Iterator[Mark]:
        return (mark for scene in self.scenes for mark in scene.marks)

    @property
    def sample_count(self) -> int:
        """Samples of the whole file at 48 kHz: as long as the picture, to the nearest sample."""
        return self.first_sample(self.frames)

    def first_sample(self, frame: int) -> int:
        """The sample that sounds when ``frame`` appears."""
        return round(frame * SAMPLE_RATE / self.genre.fps)


def frame_at(seconds: float, fps: Fraction) -> int:
    """The first frame shown at ``seconds`` or later: the one that a cut at ``seconds`` begins with."""
    return math.ceil(Fraction(seconds).limit_denominator(1_000_000) * fps)


def plan_programme(
    genre: Genre,
    *,
    seconds: float,
    lead_seconds: float = 0.0,
    seed: int = 7,
    stamp: bool = True,
    speaker: Speaker | None,
    fonts: FontBook,
) -> Programme:
    """Lay out ``seconds`` of programme after ``lead_seconds`` of black.

    Args:
        stamp: with the measuring aids: the frame stamp, flashes and beeps.
        speaker: who speaks the lines; None leaves the programme without speech.

    Raises:
        InvalidRequest: a length that is not positive, or a lead below nothing.
    """
    if not seconds > 0 or lead_seconds < 0 or not math.isfinite(seconds + lead_seconds):
        raise InvalidRequest(f"--seconds {seconds:g} must be positive and --lead {lead_seconds:g} not negative")
    lead_frames = frame_at(lead_seconds, genre.fps)
    frames = max(lead_frames + 1, frame_at(lead_seconds + seconds, genre.fps))
    rng = Random(f"{genre.name}:{seed}")  # noqa: S311 (a script, not a secret)
    planner = _Planner(genre, rng, speaker, fonts, stamp)
    scenes: list[Scene] = []
    first = lead_frames
    while first < frames:
        kind = KINDS[len(scenes) % len(KINDS)]
        end = planner.scene_end(len(scenes), kind, first, frames, lead_seconds)
        scenes.append(planner.scene(len(scenes), kind, first, end))
        first = end
    return Programme(
        genre,
        seed,
        lead_seconds,
        lead_frames,
        frames,
        stamp,
        speaker.name if speaker else None,
        fonts.name,
        tuple(scenes),
    )


class _Planner:
    """The seeded hand that writes one scene after another."""

    def __init__(self, genre: Genre, rng: Random, speaker: Speaker | None, fonts: FontBook, stamp: bool) -> None:
        self._genre, self._rng, self._speaker, self._fonts, self._stamp = genre, rng, speaker, fonts, stamp
        self._game = new_game(genre.name, rng)

    def scene_end(self, number: int, kind: Kind, first: int, frames: int, lead_seconds: float) -> int:
        fps, (shortest, longest) = self._genre.fps, self._genre.scene_seconds
        is_passage = kind in ("frozen", "black", "black_silent")
        length = self._rng.uniform(*(PASSAGE_SECONDS if is_passage else (shortest, longest)))
        if number % EDGE_EVERY == 1:
            reach = float(first / fps) - lead_seconds + shortest
            end = frame_at(lead_seconds + math.ceil(reach / WINDOW_SECONDS) * WINDOW_SECONDS, fps)
        else:
            end = first + round(length * fps)
        return frames if frames - end < SHORTEST_SCENE_SECONDS * fps else end

    def scene(self, number: int, kind: Kind, first: int, end: int) -> Scene:
        rng, genre = self._rng, self._genre
        script = write_scene(genre.name, rng, self._game)
        background = rng.choice(list(BACKGROUNDS))
        # The picture of a scene that is not held still always moves, so that "frozen" is never true by chance.
        pan = rng.choice((-2, -1, 1, 2)) * max(1, round(genre.width / 320 * 30 / genre.fps))
        groups = choose_shapes(rng, genre)
        marks = self._marks(kind, first, end)
        is_black, is_silent = kind in ("black", "black_silent"), kind in ("silent", "black_silent")
        return Scene(
            number=number,
            kind=kind,
            first_frame=first,
            end_frame=end,
            background=background,
            pan=0 if kind == "frozen" or is_black else pan,
            groups=() if is_black else groups,
            titles=() if is_black else self._titles(script, kind, first, end),
            lines=() if is_silent else self._lines(script, first, end),
            marks=marks if self._stamp else (),
            score=script.score,
        )

    def _titles(self, script: SceneScript, kind: Kind, first: int, end: int) -> tuple[ShownTitle, ...]:
        shown = []
        for title in script.titles:
            box, patch = place_title(title, self._genre, self._fonts)
            appears_late = title.role in ("corner", "effect") and kind != "frozen"
            late = min(round(self._genre.fps), (end - first) // 4) if appears_late else 0
            shown.append(ShownTitle(title, box, patch, first + late, end - late // 2))
        return tuple(shown)

    def _lines(self, script: SceneScript, first: int, end: int) -> tuple[SpokenLine, ...]:
        if self._speaker is None:
            return ()
        spoken = []
        start = round((float(first / self._genre.fps) + 0.35) * SAMPLE_RATE)
        last = round((float(end / self._genre.fps) - 0.15) * SAMPLE_RATE)
        for line in script.lines:
            samples = _at_sample_rate(self._speaker.say(line.text, line.voice), self._speaker.rate)
            if start + len(samples) > last:
                break
            spoken.append(SpokenLine(line, start, samples))
            start += len(samples) + round(0.45 * SAMPLE_RATE)
        return tuple(spoken)

    def _marks(self, kind: Kind, first: int, end: int) -> tuple[Mark, ...]:
        """Flashes and beeps, together and apart, so that neither count can be guessed from the other."""
        if kind == "black_silent":
            return ()
        fps, rng = float(self._genre.fps), self._rng
        # A flash would break a frozen picture and light a black one; a beep would break a silence.
        may_flash, may_beep = kind not in ("frozen", "black"), kind != "silent"
        marks = []
        frame, last = first + MARK_MARGIN_SECONDS * fps, end - MARK_MARGIN_SECONDS * fps
        frame += rng.uniform(0.2, 1.5) * fps
        while frame < last:
            wanted = rng.choice(((True, True), (True, True), (True, True), (True, False), (False, True)))
            flash, beep = wanted[0] and may_flash, wanted[1] and may_beep
            if flash or beep:
                marks.append(Mark(round(frame), flash, beep))
            frame += (MARK_GAP_SECONDS + rng.uniform(0.0, 2.2)) * fps
        return tuple(marks)


def _at_sample_rate(samples: NDArray[np.float32], rate: int) -> NDArray[np.int16]:
    """(N,) float at ``rate`` to (M,) int16 at 48 kHz, by straight lines: the voices hold little above 8 kHz."""
    count = round(len(samples) * SAMPLE_RATE / rate)
    places = np.arange(count) * (rate / SAMPLE_RATE)
    resampled: NDArray[np.float64] = np.interp(places, np.arange(len(samples)), samples)
    return np.round(resampled * 32767).astype(np.int16)
