"""A programme as labels: every scene, and for each 6-second window what can be seen, heard and measured in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vision_bench.errors import InvalidMedia
from vision_bench.media.broadcast.genres import WINDOW_SECONDS
from vision_bench.media.broadcast.picture import FLASH_SECONDS
from vision_bench.media.broadcast.plan import SAMPLE_RATE, Programme, Scene, ShownTitle, SpokenLine, frame_at
from vision_bench.media.broadcast.shapes import COLOURS, OUTLINES_KO
from vision_bench.media.broadcast.sound import BEEP_HZ, BEEP_SECONDS
from vision_bench.media.broadcast.stamp import BITS, stamp_box
from vision_bench.media.broadcast.wording import latin_words, says

FORMAT = 1

SEEN_SECONDS = 1.0
"""A title or shape seen for less may fall between two frames of a 2 fps sample: nobody is asked for it."""

FLASH_NEEDS_FPS = 12
"""A sample at this rate cannot miss a flash of 0.1 s."""


def label_programme(programme: Programme) -> dict[str, Any]:
    """The label file's content. Times are seconds, frames are numbers, both of the finished file."""
    genre, fps = programme.genre, programme.genre.fps
    box = stamp_box(genre.height)
    return {
        "format": FORMAT,
        "film": genre.file_name,
        "genre": genre.name,
        "genre_number": genre.number,
        "seed": programme.seed,
        "width": genre.width,
        "height": genre.height,
        "fps": f"{fps.numerator}/{fps.denominator}",
        "frames": programme.frames,
        "duration_seconds": _seconds(programme.frames / fps),
        "lead_seconds": programme.lead_seconds,
        "lead_frames": programme.lead_frames,
        "audio": {"sample_rate": SAMPLE_RATE, "channels": 2},
        "speech": programme.speaker,
        "font": programme.font,
        "stamp": {"block": box.block, "x": box.x, "y": box.y, "bits": BITS} if programme.has_stamp else None,
        "marks": {
            "flash_seconds": FLASH_SECONDS,
            "beep_seconds": BEEP_SECONDS,
            "beep_hz": BEEP_HZ,
            "items": [
                {
                    "frame": mark.frame,
                    "seconds": _seconds(mark.frame / fps),
                    "flash": mark.flash,
                    "beep": mark.beep,
                }
                for mark in programme.marks
            ],
        }
        if programme.has_stamp
        else None,
        "scenes": [_scene(programme, scene) for scene in programme.scenes],
        "windows": [window.as_json() for window in windows(programme)],
    }


def read_labels(path: Path) -> dict[str, Any]:
    """A label file's content.

    Raises:
        InvalidMedia: not a label file of this format.
    """
    try:
        labels = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InvalidMedia(f"{path} cannot be read as labels: {problem}") from problem
    if not isinstance(labels, dict) or labels.get("format") != FORMAT:
        raise InvalidMedia(f"{path} is no label file of format {FORMAT}; make one with `vision-bench broadcast make`")
    return labels


def windows(programme: Programme) -> Iterator[Window]:
    """The whole 6-second windows after the lead, numbered and named as the cutter names clips."""
    fps = programme.genre.fps
    number = 0
    while True:
        start = programme.lead_seconds + number * WINDOW_SECONDS
        first, end = frame_at(start, fps), frame_at(start + WINDOW_SECONDS, fps)
        if end > programme.frames:
            return
        yield Window(programme, number, start, first, end)
        number += 1


@dataclass(frozen=True, slots=True)
class Window:
    """One 6-second cut: the frames from ``first_frame`` up to before ``end_frame``."""

    programme: Programme
    number: int
    start_seconds: float
    first_frame: int
    end_frame: int

    @property
    def end_seconds(self) -> float:
        return self.start_seconds + WINDOW_SECONDS

    @property
    def clip(self) -> str:
        """The seed's name of the clip, without its suffix."""
        return f"{self.number + 1:04d}_{round(self.start_seconds):04d}-{round(self.end_seconds):04d}"

    @property
    def scenes(self) -> list[Scene]:
        return [scene for scene in self.programme.scenes if self._frames_seen(scene.first_frame, scene.end_frame)]

    def as_json(self) -> dict[str, Any]:
        """The window's labels."""
        titles = [(title, seen) for scene in self.scenes for title in scene.titles if (seen := self._title_seen(title))]
        lines = [(line, heard) for scene in self.scenes for line in scene.lines if (heard := self._heard(line)) > 0]
        return {
            "window": self.number,
            "clip": self.clip,
            "start_seconds": self.start_seconds,
            "end_seconds": self.end_seconds,
            "first_frame": self.first_frame,
            "frames": self.end_frame - self.first_frame,
            "scenes": [scene.number for scene in self.scenes],
            "cuts_seconds": [_seconds(frame / self.programme.genre.fps) for frame in self._cuts()],
            "texts": [{**_title(title, self.programme), "seen_seconds": seen} for title, seen in titles],
            "speech": [
                {**_line(line), "heard": "full" if self._hears_all(line) else "part", "heard_seconds": _seconds(heard)}
                for line, heard in lines
            ],
            "shapes": [
                {**shape, "seen_seconds": self._seconds_seen(scene)}
                for scene in self.scenes
                for shape in _shapes(scene)
            ],
            "score": self.scenes[-1].score,
            "audio_only": self._audio_only(titles, lines),
            "video_only": self._video_only(titles, lines),
            "measurable": self._measurable(),
        }

    def _frames_seen(self, first: int, end: int) -> int:
        return max(0, min(end, self.end_frame) - max(first, self.first_frame))

    def _seconds_seen(self, scene: Scene) -> float:
        return _seconds(self._frames_seen(scene.first_frame, scene.end_frame) / self.programme.genre.fps)

    def _title_seen(self, title: ShownTitle) -> float:
        return _seconds(self._frames_seen(title.first_frame, title.end_frame) / self.programme.genre.fps)

    def _heard(self, line: SpokenLine) -> float:
        return min(line.end_seconds, self.end_seconds) - max(line.start_seconds, self.start_seconds)

    def _hears_all(self, line: SpokenLine) -> bool:
        return line.start_seconds >= self.start_seconds and line.end_seconds <= self.end_seconds

    def _cuts(self) -> list[int]:
        return [scene.first_frame for scene in self.scenes if scene.first_frame > self.first_frame]

    def _audio_only(
        self, titles: list[tuple[ShownTitle, float]], lines: list[tuple[SpokenLine, float]]
    ) -> list[dict[str, Any]]:
        """Facts of sentences heard whole, of which no wording stands on the screen."""
        shown = " ".join(title.title.text for title, _ in titles)
        found = {
            (fact.name, fact.value): {"fact": fact.name, "value": fact.value, "accept": list(fact.accept)}
            for line, _ in lines
            if self._hears_all(line)
            for fact in line.line.facts
            if not any(says(shown, wording) for wording in fact.accept)
        }
        return list(found.values())

    def _video_only(
        self, titles: list[tuple[ShownTitle, float]], lines: list[tuple[SpokenLine, float]]
    ) -> list[dict[str, Any]]:
        """Texts seen long enough that nobody speaks."""
        spoken = " ".join(line.line.text for line, _ in lines)
        texts = {
            title.title.text: title.title.role
            for title, seen in titles
            if seen >= SEEN_SECONDS and not says(spoken, title.title.text)
        }
        return [{"fact": role, "value": text, "accept": [text]} for text, role in texts.items()]

    def _measurable(self) -> dict[str, Any]:
        """What classical perception can find, by the sense it needs. ``tolerance`` is allowed to both sides."""
        first_sample = round(self.start_seconds * SAMPLE_RATE)
        silent = sum(self._seconds_seen(scene) for scene in self.scenes if scene.is_silent)
        black = sum(self._seconds_seen(scene) for scene in self.scenes if scene.is_black)
        frozen = sum(self._seconds_seen(scene) for scene in self.scenes if scene.kind == "frozen")
        spoken = sum(max(0.0, self._heard(line)) for scene in self.scenes for line in scene.lines)
        audio: dict[str, Any] = {
            "speech_seconds": {"value": _seconds(spoken), "tolerance": 1.0},
            "silent_seconds": {"value": _seconds(silent), "tolerance": 0.3},
        }
        # Sampled twice a second, a passage's edges are known to one sample on each side.
        video: dict[str, Any] = {
            "cuts": {"value": len(self._cuts()), "tolerance": 0},
            "black_seconds": {"value": _seconds(black), "tolerance": 0.6},
            "frozen_seconds": {"value": _seconds(frozen), "tolerance": 1.1},
            "shapes": {"value": self._shape_counts(long=True), "optional": self._shape_counts(long=False)},
            "latin_text": {"value": self._latin(long=True), "optional": self._latin(long=False)},
        }
        if self.programme.has_stamp:
            marks = [mark for mark in self.programme.marks if self._frames_seen(mark.frame, mark.frame + 1)]
            beeps = [
                mark
                for mark in self.programme.marks
                if mark.beep
                and 0 <= self.programme.first_sample(mark.frame) - first_sample < WINDOW_SECONDS * SAMPLE_RATE
            ]
            audio["beeps"] = {"value": len(beeps), "tolerance": 0}
            video["flashes"] = {
                "value": sum(mark.flash for mark in marks),
                "tolerance": 0,
                "needs_fps": FLASH_NEEDS_FPS,
            }
        return {"audio": audio, "video": video}

    def _shape_counts(self, *, long: bool) -> dict[str, int]:
        """The most shapes of each colour at one time, over scenes seen for long (or only those seen briefly)."""
        counts: dict[str, int] = {}
        for scene in self.scenes:
            if (self._seconds_seen(scene) >= SEEN_SECONDS) == long:
                for group in scene.groups:
                    counts[group.colour] = max(group.count, counts.get(group.colour, 0))
        return counts

    def _latin(self, *, long: bool) -> list[str]:
        """The different words and numbers, sorted, of the English titles seen for long; or all that may be read too.

        Those are words seen only briefly, and numbers in Korean titles, which a reader of Latin letters may find.
        """
        asked, others = set[str](), set[str]()
        for scene in self.scenes:
            for title in scene.titles:
                seen = self._title_seen(title)
                is_asked = title.title.language == "en" and seen >= SEEN_SECONDS
                if seen:
                    (asked if is_asked else others).update(latin_words(title.title.text))
        return sorted(asked if long else others - asked)


def _scene(programme: Programme, scene: Scene) -> dict[str, Any]:
    fps = programme.genre.fps
    return {
        "scene": scene.number,
        "kind": scene.kind,
        "start_seconds": _seconds(scene.first_frame / fps),
        "end_seconds": _seconds(scene.end_frame / fps),
        "first_frame": scene.first_frame,
        "end_frame": scene.end_frame,
        "background": scene.background,
        "camera_pan": "none" if scene.pan == 0 else "right" if scene.pan > 0 else "left",
        "is_black": scene.is_black,
        "is_silent": scene.is_silent,
        "shapes": _shapes(scene),
        "texts": [_title(title, programme) for title in scene.titles],
        "speech": [_line(line) for line in scene.lines],
        "score": scene.score,
    }


def _shapes(scene: Scene) -> list[dict[str, Any]]:
    return [
        {
            "colour": group.colour,
            "colour_ko": COLOURS[group.colour][1],
            "outline": group.outline,
            "outline_ko": OUTLINES_KO[group.outline],
            "count": group.count,
            "direction": "still" if scene.kind == "frozen" else group.direction,
        }
        for group in scene.groups
    ]


def _title(shown: ShownTitle, programme: Programme) -> dict[str, Any]:
    fps = programme.genre.fps
    return {
        "text": shown.title.text,
        "language": shown.title.language,
        "role": shown.title.role,
        "start_seconds": _seconds(shown.first_frame / fps),
        "end_seconds": _seconds(shown.end_frame / fps),
        "box": list(shown.box),
    }


def _line(spoken: SpokenLine) -> dict[str, Any]:
    return {
        "text": spoken.line.text,
        "language": spoken.line.language,
        "voice": spoken.line.voice,
        "start_seconds": _seconds(spoken.start_seconds),
        "end_seconds": _seconds(spoken.end_seconds),
        "facts": [_fact(fact.name, fact.value, fact.accept) for fact in spoken.line.facts],
    }


def _fact(name: str, value: str | int, accept: Iterable[str]) -> dict[str, Any]:
    return {"fact": name, "value": value, "accept": list(accept)}


def _seconds(value: Any) -> float:
    return round(float(value), 4)
