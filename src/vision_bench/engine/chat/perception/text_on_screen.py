"""Text in a picture: Latin letters and digits are read, other scripts are reported as unread.

PP-OCRv6 small, detector and recogniser, from the files inside the rapidocr wheel; nothing is ever fetched. The
recogniser's raw output is decoded here, letter by letter with its place, because `legibility` needs the places.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vision_bench.engine.chat.perception.legibility import LINE_HEIGHT, Letter, Reading, ink_runs, judge
from vision_bench.engine.chat.perception.libraries import load, load_cv2
from vision_bench.errors import MissingTool

PURPOSE = "reading text on the screen (--model baseline)"
DETECTOR, RECOGNISER = "PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx"

DETECTOR_SIDE = 640
"""Longer side of what the detector sees, pixels: 0.12 s a frame on one core, against 0.32 s at 960."""

LEAST_LINE_WIDTH = 320
"""The recogniser was trained on lines padded to this width."""

COLUMN = 8
"""Columns of a line that one step of the recogniser's output covers; its centres lie 3 columns late on average."""
CENTRE_OFFSET = COLUMN / 2 - 3

UNREAD_SCORE, UNREAD_HEIGHT = 0.72, 0.25
"""A patch in which nothing was read counts as writing from this detector score on, up to this share of the height:
branches and fur reach 0.63, titles 0.80."""


MOST_PLACES = 24
"""Places read in one frame, the largest letters first: a page of credits has hundreds, at 0.05 s each."""


@dataclass(frozen=True, slots=True)
class TextFacts:
    """Text of some frames: distinct lines, in the order first seen.

    ``unread_places`` is how many places of one frame, at most, hold writing that could not be read; ``skipped_places``
    how many more than `MOST_PLACES` there were, which nobody tried to read.
    """

    lines: tuple[str, ...]
    unread_places: int
    skipped_places: int = 0


class Place(NamedTuple):
    """A patch of text as detected: BGR pixels and the detector's score."""

    pixels: NDArray[np.uint8]
    score: float


class TextReader:
    """The two networks, loaded when first used and kept. May be used from several threads.

    Args:
        threads: cores that one picture uses.

    Raises:
        MissingExtra: rapidocr or onnxruntime is not installed (on first use).
        MissingTool: this rapidocr carries other models.
    """

    def __init__(self, *, threads: int = 1) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._engine: Any = None

    def read(self, frames: Iterable[NDArray[np.uint8]]) -> TextFacts:
        """The text of (H, W, 3) RGB frames."""
        engine = self._loaded()
        lines: dict[str, None] = {}
        unread = skipped = 0
        for frame in frames:
            places = self._places(engine, frame)
            skipped = max(skipped, len(places) - MOST_PLACES)
            readings = [(place, self._recognise(engine, place.pixels)) for place in _largest(places)]
            lines |= {reading.text: None for _, reading in readings if any(map(str.isalnum, reading.text))}
            unread_here = sum(reading.has_unread and _is_writing(place, frame.shape[0]) for place, reading in readings)
            unread = max(unread, unread_here)
        return TextFacts(tuple(lines), unread, skipped)

    def _loaded(self) -> Any:
        with self._lock:
            if self._engine is None:
                self._engine = _load_engine(self._threads)
            return self._engine

    def _places(self, engine: Any, frame: NDArray[np.uint8]) -> list[Place]:
        """Patches of text, from top to bottom and left to right."""
        found = engine.text_det(np.ascontiguousarray(frame[:, :, ::-1]))
        if found.boxes is None:
            return []
        patches = engine.crop_text_regions(frame[:, :, ::-1], found.boxes)
        return [Place(patch, float(score)) for patch, score in zip(patches, found.scores, strict=True)]

    def _recognise(self, engine: Any, pixels: NDArray[np.uint8]) -> Reading:
        cv2 = load_cv2()
        height, width = pixels.shape[:2]
        line_width = max(1, math.ceil(LINE_HEIGHT * width / height))
        line = cv2.resize(pixels, (line_width, LINE_HEIGHT))
        padded = np.zeros((1, 3, LINE_HEIGHT, max(line_width, LEAST_LINE_WIDTH)), np.float32)
        padded[0, :, :, :line_width] = line.transpose(2, 0, 1) / np.float32(127.5) - 1
        steps = engine.text_rec.session(padded)[0]
        letters = list(_letters(steps, engine.text_rec.postprocess_op.character))
        return judge(letters, ink_runs(cv2.cvtColor(line, cv2.COLOR_BGR2GRAY)), width=line_width)


def _letters(steps: NDArray[np.float32], alphabet: list[str]) -> Iterable[Letter]:
    """CTC (steps, alphabet): the likeliest letter of each step, repeats and blanks (number 0) dropped."""
    best = steps.argmax(axis=1)
    for step, number in enumerate(best):
        if number and (step == 0 or number != best[step - 1]):
            yield Letter(alphabet[number], float(steps[step, number]), step * COLUMN + CENTRE_OFFSET)


def _largest(places: list[Place]) -> list[Place]:
    """The `MOST_PLACES` with the tallest letters, in the order given."""
    order = sorted(range(len(places)), key=lambda number: -places[number].pixels.shape[0])
    return [places[number] for number in sorted(order[:MOST_PLACES])]


def _is_writing(place: Place, frame_height: int) -> bool:
    height, width = place.pixels.shape[:2]
    return place.score >= UNREAD_SCORE and height <= UNREAD_HEIGHT * frame_height and width >= height


def _load_engine(threads: int) -> Any:
    rapidocr = load("rapidocr", PURPOSE)
    load("onnxruntime", PURPOSE)
    models = Path(str(rapidocr.__file__)).parent / "models"
    for name in (DETECTOR, RECOGNISER):
        if not (models / name).is_file():
            raise MissingTool(
                f"rapidocr {getattr(rapidocr, '__version__', '?')} carries no {name}; install 'vision-bench[baseline]'"
            )
    engine = rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,
            "Det.model_path": str(models / DETECTOR),
            "Det.limit_type": "max",
            "Det.limit_side_len": DETECTOR_SIDE,
            "Rec.model_path": str(models / RECOGNISER),
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )
    # Both networks load on first use; a blank line makes the recogniser load now, under our lock.
    blank = np.zeros((LINE_HEIGHT, LEAST_LINE_WIDTH, 3), np.uint8)
    engine(blank, use_det=True, use_cls=False, use_rec=False)
    engine.recognize_txt([blank])
    return engine
