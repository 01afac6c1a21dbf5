"""What sampled frames show: black, frozen, cuts, flashes, brightness, motion, coloured shapes.

Only the frames that were sampled count: between two of them nothing is known, so an event shorter than their distance
may be missed and a passage's length is known to about that distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vision_bench.engine.chat.perception.continuity import share_found_again
from vision_bench.engine.chat.perception.shapes import (
    COUNT_WIDTH,
    ShapeCount,
    agree,
    count_shapes,
    most_at_once,
    most_of_a_colour,
)
from vision_bench.media.frames import DecodedFrames

Luma = NDArray[np.uint8]

STUDY_WIDTH = 160
"""Width at which frames are compared, pixels: details below 1/160 of the picture are noise of the encoder."""

BLACK_LUMA, BLACK_SHARE = 30, 0.97
"""A frame is black when this share of it is darker than this (0 to 255). The rest leaves room for a frame stamp."""

CHANGED_LUMA, FROZEN_SHARE, FROZEN_SECONDS = 10, 0.006, 0.4
"""Two frames are one still when fewer than this share of pixels differ by more than this. A picture is frozen when its
frames are still over at least this long: at a high rate neighbours hardly differ in a slow pan either."""

SAME_SCENE_SHARE = 0.37
"""Two frames are of one scene when this share of the blocks of each is found again near its place in the other.
Measured at 2 frames a second: 0.58 and more within the scenes of labelled broadcasts, 0.33 and less across their cuts;
0.40 and more, 0.20 and less in an animated film (docs/baseline.md)."""

FLASH_LUMA, FLASH_SECONDS = 40, 0.35
"""A flash outshines the frames before and after by this much, and its lit frames span no more than this."""

WHITE_LUMA, WHITE_SHARE = 215, 0.75
"""A first or last frame has no frame on one side to outshine: it is lit when this share is brighter than this."""

EDGE_LUMA = 48
"""A step between neighbouring pixels that letters have and most scenery has not."""

SHAPE_FRAMES = 12
"""About how many frames shapes are counted on, evenly spread; every scene has one."""


@dataclass(frozen=True, slots=True)
class PictureFacts:
    """What was measured. Seconds run from the clip's first frame.

    Attributes:
        frame_count: frames looked at.
        duration_seconds: how long the clip lasts; 0.0 for a still picture.
        black_seconds, frozen_seconds: never both at once.
        cut_seconds: times of the first frame seen after each cut; a change from or to black is one.
        flash_seconds: times of the first lit frame seen of each flash.
        brightness: mean luma, 0 to 255, of the frames that are not black; None when all are.
        motion: mean share of the picture that changes from one frame to the next within a scene; None when no two
            such frames follow each other.
        shapes: the most of each colour and outline that one scene holds.
        colour_counts: the most of each colour that one scene holds, whatever their outlines.
        is_black: every frame is.
        worth_reading: the frames on which text is worth looking for, most promising first: one a scene, the one with
            most fine detail.
    """

    frame_count: int
    width: int
    height: int
    duration_seconds: float
    black_seconds: float
    frozen_seconds: float
    cut_seconds: tuple[float, ...]
    flash_seconds: tuple[float, ...]
    brightness: float | None
    motion: float | None
    shapes: tuple[ShapeCount, ...]
    colour_counts: dict[str, int]
    is_black: bool
    worth_reading: tuple[int, ...]


def look(decoded: DecodedFrames, *, duration_seconds: float) -> PictureFacts:
    """Measure (T, H, W, 3) frames, T >= 1."""
    frames, times = decoded
    # Whatever the frames' size, everything but text is looked at in small copies: a third of the cost of looking.
    small = [reduced(frame) for frame in frames]
    lumas = [study_luma(frame) for frame in small]
    blacks = [is_black(luma) for luma in lumas]
    flashes = find_flashes(lumas, times)
    lit = {index for first, last in flashes for index in range(first, last + 1)}
    # A flash interrupts a scene without ending it: frames are compared across it.
    kept = [index for index in range(len(lumas)) if index not in lit]
    changed = {b: changed_share(lumas[a], lumas[b]) for a, b in pairwise(kept)}
    still = {b for b, share in changed.items() if share < FROZEN_SHARE}
    cuts = [
        b for a, b in pairwise(kept) if b not in still and not _is_same_scene(lumas[a], lumas[b], times[b] - times[a])
    ]
    frozen = _frozen(lumas, times, [index for index in kept if not blacks[index]])
    weights = seconds_of_each(times, duration_seconds)
    scenes = [scene for scene in _split(kept, cuts) if not blacks[scene[0]]]
    within = [changed[b] for scene in scenes for b in scene[1:]]
    shapes = _shapes(small, scenes)
    bright = [float(lumas[index].mean()) for scene in scenes for index in scene]
    return PictureFacts(
        frame_count=len(lumas),
        width=frames.shape[2],
        height=frames.shape[1],
        duration_seconds=duration_seconds,
        black_seconds=sum((weights[index] for index in kept if blacks[index]), 0.0),
        frozen_seconds=sum((weights[index] for index in frozen), 0.0),
        cut_seconds=tuple(float(times[index]) for index in cuts),
        flash_seconds=tuple(float(times[first]) for first, _ in flashes),
        brightness=sum(bright) / len(bright) if bright else None,
        motion=sum(within) / len(within) if within else None,
        shapes=most_at_once(shapes),
        colour_counts=most_of_a_colour(shapes),
        is_black=all(blacks),
        worth_reading=tuple(max(scene, key=lambda index: _detail(lumas[index])) for scene in scenes),
    )


def reduced(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An (H, W, 3) frame shrunk by a whole number, to no less than the width at which shapes are counted."""
    factor = frame.shape[1] // COUNT_WIDTH
    return np.asarray(Image.fromarray(frame).reduce(factor)) if factor > 1 else frame


def study_luma(frame: NDArray[np.uint8]) -> Luma:
    """(h, w) luma of an (H, W, 3) frame, no wider than `STUDY_WIDTH`."""
    image = Image.fromarray(frame)
    if image.width > STUDY_WIDTH:
        height = max(1, round(image.height * STUDY_WIDTH / image.width))
        image = image.resize((STUDY_WIDTH, height), Image.Resampling.BOX)
    return np.asarray(image.convert("L"))


def is_black(luma: Luma) -> bool:
    """Whether a frame counts as black."""
    return bool((luma < BLACK_LUMA).mean() >= BLACK_SHARE)


def changed_share(before: Luma, after: Luma) -> float:
    """Share of pixels whose luma differs clearly, 0 to 1."""
    difference = np.abs(before.astype(np.int16) - after.astype(np.int16))
    return float((difference > CHANGED_LUMA).mean())


def _frozen(lumas: Sequence[Luma], times: NDArray[np.float64], seen: list[int]) -> set[int]:
    """Frames of stretches in which nothing moves."""
    frozen: set[int] = set()
    start = 0
    for place in range(1, len(seen)):
        while start + 1 < place and times[seen[place]] - times[seen[start + 1]] >= FROZEN_SECONDS:
            start += 1
        is_apart = times[seen[place]] - times[seen[start]] >= FROZEN_SECONDS
        if is_apart and changed_share(lumas[seen[start]], lumas[seen[place]]) < FROZEN_SHARE:
            frozen.update(seen[start : place + 1])
    return frozen


def _is_same_scene(before: Luma, after: Luma, seconds_apart: float) -> bool:
    if is_black(before) or is_black(after):
        return is_black(before) and is_black(after)
    return share_found_again(before, after, seconds_apart=seconds_apart) >= SAME_SCENE_SHARE


def find_flashes(lumas: Sequence[Luma], times: NDArray[np.float64]) -> list[tuple[int, int]]:
    """First and last lit frame of each flash: much brighter than before and after, short, back in the same scene."""
    means = [float(luma.mean()) for luma in lumas]
    found = []
    index = 0
    while index < len(lumas):
        last = _last_lit(means, index)
        if last is not None and times[last] - times[index] <= FLASH_SECONDS and _interrupts(lumas, times, index, last):
            found.append((index, last))
            index = last
        index += 1
    return found


def _last_lit(means: list[float], first: int) -> int | None:
    """The last of the frames from ``first`` on that outshine the one before; None when ``first`` does not."""
    before = means[first - 1] if first else means[min(first + 1, len(means) - 1)]
    if means[first] - before < FLASH_LUMA:
        return None
    last = first
    while last + 1 < len(means) and means[last + 1] - before >= FLASH_LUMA:
        last += 1
    return last


def _interrupts(lumas: Sequence[Luma], times: NDArray[np.float64], first: int, last: int) -> bool:
    if len(lumas) == 1:
        return False
    if first == 0 or last == len(lumas) - 1:
        return all((lumas[index] > WHITE_LUMA).mean() >= WHITE_SHARE for index in (first, last))
    before, after = lumas[first - 1], lumas[last + 1]
    is_over = lumas[first].mean() - after.mean() >= FLASH_LUMA
    return bool(is_over) and _is_same_scene(before, after, times[last + 1] - times[first - 1])


def seconds_of_each(times: NDArray[np.float64], duration_seconds: float) -> list[float]:
    """How long each frame stands for: up to halfway to its neighbours, and to the clip's ends. They sum to it."""
    halfway = [(float(a) + float(b)) / 2 for a, b in pairwise(times)]
    borders = [0.0, *halfway, max(duration_seconds, float(times[-1]))]
    return [end - start for start, end in pairwise(borders)]


def _split(kept: list[int], cuts: list[int]) -> list[list[int]]:
    """Frames that are not lit, scene by scene."""
    scenes: list[list[int]] = []
    for index in kept:
        if not scenes or index in cuts:
            scenes.append([])
        scenes[-1].append(index)
    return scenes


def _shapes(frames: Sequence[NDArray[np.uint8]], scenes: list[list[int]]) -> list[tuple[ShapeCount, ...]]:
    """What each scene holds."""
    total = sum(len(scene) for scene in scenes)
    step = max(1, -(-total // SHAPE_FRAMES))
    return [agree([count_shapes(frames[index]) for index in scene[::step]]) for scene in scenes]


def _detail(luma: Luma) -> float:
    """How many steep edges a frame has; a title raises it, a moving camera does not."""
    if luma.shape[1] < 2:
        return 0.0
    return float((np.abs(np.diff(luma.astype(np.int16), axis=1)) > EDGE_LUMA).mean())
