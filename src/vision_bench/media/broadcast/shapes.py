"""The counted shapes: groups of one colour that travel along one axis and never meet, leave or reach a title."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from vision_bench.media.broadcast.genres import Genre

Outline = Literal["circle", "square", "triangle"]
Direction = Literal["left", "right", "up", "down", "still"]

# Hues far enough apart to be told apart after 4:2:0 and a low rate.
COLOURS: dict[str, tuple[tuple[int, int, int], str]] = {
    "red": ((220, 30, 30), "빨간색"),
    "yellow": ((240, 215, 20), "노란색"),
    "green": ((25, 175, 60), "초록색"),
    "cyan": ((20, 200, 220), "하늘색"),
    "blue": ((35, 70, 225), "파란색"),
    "magenta": ((210, 40, 200), "자홍색"),
}
OUTLINES_KO: dict[Outline, str] = {"circle": "원", "square": "사각형", "triangle": "삼각형"}

TOP, BOTTOM = 0.235, 0.64  # the band of the picture that titles leave free
SPACING = 1.3  # sides from one shape's edge to the next one's


@dataclass(frozen=True, slots=True)
class ShapeGroup:
    """``count`` equal shapes in a row, ``side`` pixels each; ``lane`` keeps two groups of a scene apart."""

    outline: Outline
    colour: str
    count: int
    direction: Direction
    along: Literal["x", "y"]
    lane: int
    side: int


def choose_shapes(rng: Random, genre: Genre) -> tuple[ShapeGroup, ...]:
    """One or two groups of different colours; both travel along the same axis."""
    colours = rng.sample(list(COLOURS), rng.randint(1, 2))
    along: Literal["x", "y"] = rng.choice(("x", "y"))
    directions: tuple[Direction, ...] = ("left", "right", "still") if along == "x" else ("up", "down", "still")
    return tuple(
        ShapeGroup(
            outline=rng.choice(("circle", "square", "triangle")),
            colour=colour,
            count=rng.randint(1, 4),
            direction=rng.choice(directions),
            along=along,
            lane=lane,
            side=genre.height // 9 & ~1,
        )
        for lane, colour in enumerate(colours)
    )


def positions(group: ShapeGroup, genre: Genre, progress: float) -> list[tuple[int, int]]:
    """Left and top edge of every shape, even pixels, when ``progress`` (0 to 1) of the scene has passed."""
    travelled = {"right": progress, "down": progress, "left": 1 - progress, "up": 1 - progress, "still": 0.4}
    travel = travelled[group.direction]
    step = SPACING * group.side
    length = step * (group.count - 1) + group.side
    top, height = TOP * genre.height, (BOTTOM - TOP) * genre.height
    if group.along == "x":
        x = 0.04 * genre.width + travel * (0.92 * genre.width - length)
        y = top + group.lane * height / 2
    else:
        x = (0.06 + 0.48 * group.lane) * genre.width
        y = top + travel * (height - group.side)
    return [(int(x + number * step) & ~1, int(y) & ~1) for number in range(group.count)]
