"""Counting plain coloured shapes: flat circles, squares and triangles of a strong colour, each clear of the others.

Meant for drawn pictures. In a photograph it may find a disc that is one, and mostly finds nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vision_bench.engine.chat.perception.libraries import load_cv2

Outline = Literal["circle", "square", "triangle"]

COUNT_WIDTH = 320

HUES: tuple[tuple[str, int], ...] = (
    ("red", 7),
    ("orange", 20),
    ("yellow", 35),
    ("green", 80),
    ("cyan", 103),
    ("blue", 127),
    ("purple", 146),
    ("magenta", 168),
    ("red", 180),
)
"""Colour names by the hue where each ends, in half degrees (OpenCV's unit)."""

STRONG, LIGHT = 110, 70
"""Least saturation and value (0 to 255) of a colour that counts."""

PALE, WHITE = 40, 228
"""White: saturation under, value over."""

AREA_SHARE = (0.0012, 0.06)
SQUARENESS = 1.35
OVERLAP = 0.84
"""Least intersection over union of a found patch with the ideal outline in its box."""

FLAT_LUMA = 9.0
"""Greatest deviation of luma inside a shape: drawn shapes are flat, things in photographs are shaded."""


@dataclass(frozen=True, slots=True)
class ShapeCount:
    """``count`` shapes of one colour and outline seen at one time."""

    colour: str
    outline: Outline
    count: int


def count_shapes(frame: NDArray[np.uint8]) -> tuple[ShapeCount, ...]:
    """The shapes in one (H, W, 3) RGB frame, by colour and outline."""
    cv2 = load_cv2()
    if frame.shape[1] > COUNT_WIDTH:
        height = max(1, round(frame.shape[0] * COUNT_WIDTH / frame.shape[1]))
        frame = cv2.resize(frame, (COUNT_WIDTH, height), interpolation=cv2.INTER_AREA)
    hue, saturation, value = cv2.split(cv2.cvtColor(frame, cv2.COLOR_RGB2HSV))
    luma = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
    is_strong = (saturation >= STRONG) & (value >= LIGHT)
    found: Counter[tuple[str, Outline]] = Counter()
    start = 0
    masks: dict[str, NDArray[np.bool_]] = {"white": (saturation < PALE) & (value >= WHITE)}
    for colour, end in HUES:
        mask = is_strong & (hue >= start) & (hue < end)
        masks[colour] = masks[colour] | mask if colour in masks else mask
        start = end
    for colour, mask in masks.items():
        if mask.mean() >= AREA_SHARE[0]:
            found.update((colour, outline) for outline in _outlines(mask, luma))
    return tuple(ShapeCount(colour, outline, count) for (colour, outline), count in sorted(found.items()))


def _outlines(mask: NDArray[np.bool_], luma: NDArray[np.uint8]) -> list[Outline]:
    cv2 = load_cv2()
    total = mask.size
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
    outlines = []
    for label, (x, y, width, height, area) in enumerate(stats.tolist()):
        if label == 0 or not AREA_SHARE[0] <= area / total <= AREA_SHARE[1]:
            continue
        if max(width, height) > SQUARENESS * min(width, height):
            continue
        patch = labels[y : y + height, x : x + width] == label
        inside = cv2.erode(patch.astype(np.uint8), np.ones((3, 3), np.uint8), borderValue=0).astype(bool)
        if inside.any() and luma[y : y + height, x : x + width][inside].std() <= FLAT_LUMA:
            outline = _outline_of(patch)
            if outline is not None:
                outlines.append(outline)
    return outlines


def _outline_of(patch: NDArray[np.bool_]) -> Outline | None:
    """Which ideal outline fills the box most like the patch does; None when none does."""
    overlaps = {
        outline: float((patch & ideal).sum() / (patch | ideal).sum()) for outline, ideal in _ideals(*patch.shape)
    }
    best = max(overlaps, key=lambda outline: overlaps[outline])
    return best if overlaps[best] >= OVERLAP else None


def _ideals(height: int, width: int) -> list[tuple[Outline, NDArray[np.bool_]]]:
    """The three outlines as masks (height, width)."""
    y, x = np.mgrid[0:height, 0:width]
    across, down = (x + 0.5) / width * 2 - 1, (y + 0.5) / height
    return [
        ("circle", across**2 + (down * 2 - 1) ** 2 <= 1),
        ("square", np.ones((height, width), dtype=np.bool_)),
        ("triangle", np.abs(across) <= down),
    ]


def agree(counts: Sequence[tuple[ShapeCount, ...]]) -> tuple[ShapeCount, ...]:
    """What the frames of one scene say together: each count that most frames give; shapes that few show are left out.

    Frames in which a shape is hidden show fewer, never more, so of two equally frequent counts the larger wins.
    """
    by_kind: dict[tuple[str, Outline], list[int]] = {}
    for shapes in counts:
        for shape in shapes:
            by_kind.setdefault((shape.colour, shape.outline), []).append(shape.count)
    return tuple(
        ShapeCount(colour, outline, max(Counter(seen).items(), key=lambda item: (item[1], item[0]))[0])
        for (colour, outline), seen in sorted(by_kind.items())
        if 2 * len(seen) > len(counts) or len(seen) == len(counts)
    )


def most_at_once(scenes: Sequence[tuple[ShapeCount, ...]]) -> tuple[ShapeCount, ...]:
    """The greatest count of each kind over scenes."""
    most: dict[tuple[str, Outline], int] = {}
    for shapes in scenes:
        for shape in shapes:
            kind = shape.colour, shape.outline
            most[kind] = max(shape.count, most.get(kind, 0))
    return tuple(ShapeCount(colour, outline, count) for (colour, outline), count in sorted(most.items()))


def most_of_a_colour(scenes: Sequence[tuple[ShapeCount, ...]]) -> dict[str, int]:
    """The greatest number of shapes of each colour in one scene, all outlines together."""
    most: dict[str, int] = {}
    for shapes in scenes:
        total = Counter[str]()
        for shape in shapes:
            total[shape.colour] += shape.count
        most |= {colour: max(count, most.get(colour, 0)) for colour, count in total.items()}
    return dict(sorted(most.items()))
