"""Make one broadcast: the film and, beside it, the labels that say what is in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vision_bench.drafts import replacing
from vision_bench.media.broadcast.fonts import find_font
from vision_bench.media.broadcast.genres import Genre
from vision_bench.media.broadcast.labels import label_programme
from vision_bench.media.broadcast.picture import Canvas, ScenePainter
from vision_bench.media.broadcast.plan import SAMPLE_RATE, Programme, plan_programme
from vision_bench.media.broadcast.sound import SoundTrack
from vision_bench.media.broadcast.speech import find_espeak
from vision_bench.media.broadcast.writer import BroadcastFile

Progress = Callable[[int, int], None]
"""Told the frames drawn so far and the frames in all."""


@dataclass(frozen=True, slots=True)
class MadeBroadcast:
    """What was written, and what a reader must be warned of."""

    film: Path
    labels: Path
    frames: int
    size_bytes: int
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "film": str(self.film),
            "labels": str(self.labels),
            "frames": self.frames,
            "size_bytes": self.size_bytes,
            "warnings": list(self.warnings),
        }


def make_broadcast(
    genre: Genre,
    out: Path,
    *,
    seconds: float,
    lead_seconds: float = 0.0,
    seed: int = 7,
    stamp: bool = True,
    progress: Progress | None = None,
) -> MadeBroadcast:
    """Write ``out/<genre's file>.mp4`` and ``<base>.labels.json``; both appear whole or not at all.

    The same arguments give the same labels, and with the same libraries the same bytes.

    Raises:
        InvalidRequest: lengths that cannot be.
        MissingExtra: no font for Hangul.
    """
    speaker = find_espeak()
    programme = plan_programme(
        genre,
        seconds=seconds,
        lead_seconds=lead_seconds,
        seed=seed,
        stamp=stamp,
        speaker=speaker,
        fonts=find_font(),
    )
    warnings = () if speaker else (NO_SPEECH,)
    out.mkdir(parents=True, exist_ok=True)
    film = out / genre.file_name
    labels = film.with_suffix(".labels.json")
    with replacing(labels) as labels_draft, replacing(film) as film_draft:
        write_film(programme, film_draft, progress)
        text = json.dumps(label_programme(programme), ensure_ascii=False, indent=1)
        labels_draft.write_text(text + "\n", encoding="utf-8")
    return MadeBroadcast(film, labels, programme.frames, film.stat().st_size, warnings)


NO_SPEECH = "made without speech: no espeak-ng here; pip install 'vision-bench[broadcast]' for spoken sentences"


def write_film(programme: Programme, path: Path, progress: Progress | None = None) -> None:
    """Draw, sound and encode a programme into ``path``, holding one scene and one second at a time."""
    canvas, track = Canvas(programme.genre), SoundTrack(programme)
    with BroadcastFile(path, programme.genre, lead_frames=programme.lead_frames) as file:
        for scene in programme.scenes:
            painter = ScenePainter(programme, scene)
            for frame in range(scene.first_frame, scene.end_frame):
                painter.paint(canvas, frame)
                file.add_frame(canvas.buffer)
                # Sound keeps up with the picture, so that the muxer need not hold much of either.
                while file.next_sample <= programme.first_sample(frame):
                    _add_second(file, track, programme)
                if progress is not None:
                    progress(frame + 1 - programme.lead_frames, programme.frames - programme.lead_frames)
        while file.next_sample < programme.sample_count:
            _add_second(file, track, programme)


def _add_second(file: BroadcastFile, track: SoundTrack, programme: Programme) -> None:
    count = min(SAMPLE_RATE, programme.sample_count - file.next_sample)
    if count > 0:
        file.add_sound(track.block(file.next_sample, count))
