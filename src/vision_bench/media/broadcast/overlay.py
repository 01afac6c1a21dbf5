"""Titles as grey patches at their role's place. Grey alone, so that only the counted shapes have colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from vision_bench.errors import MissingExtra
from vision_bench.media.broadcast.fonts import FontBook
from vision_bench.media.broadcast.genres import Genre
from vision_bench.media.broadcast.script import Role, Title
from vision_bench.media.broadcast.stamp import stamp_box

MISSING = "\uffff"  # not a character, so every font draws its "no such glyph" box


class Box(NamedTuple):
    """A place in the picture, pixels; all four even, because chroma is halved."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Style:
    """How a role is set: letter height and place as parts of the picture, ink and paper as luma."""

    size: float
    anchor: tuple[float, float]
    """Left edge and top edge; a left edge above 0.5 is a right edge, 0.5 centres."""
    ink: int
    paper: int


STYLES: dict[Role, Style] = {
    "scoreboard": Style(1 / 13, (0.025, 0.025), 235, 16),
    "count": Style(1 / 20, (0.025, 0.145), 235, 40),
    "logo": Style(1 / 20, (0.97, 0.035), 235, 40),
    "corner": Style(1 / 20, (0.97, 0.035), 16, 225),
    "effect": Style(1 / 10, (0.5, 0.66), 16, 235),
    "headline": Style(1 / 15, (0.05, 0.73), 235, 16),
    "caption": Style(1 / 17, (0.06, 0.80), 235, 16),
    "ticker": Style(1 / 26, (0.05, 0.855), 16, 200),
}


def place_title(title: Title, genre: Genre, fonts: FontBook) -> tuple[Box, NDArray[np.uint8]]:
    """Where the title lies and its luma patch (height, width), shrunk until it fits the picture's width.

    Raises:
        MissingExtra: the font lacks a glyph of the text, so that the label would name letters nobody can see.
    """
    style = STYLES[title.role]
    pixels = round(genre.height * style.size)
    _refuse_missing_glyphs(title.text, fonts)
    patch = _patch(title.text, pixels, style, fonts)
    room = genre.width * 0.94
    while patch.shape[1] > room:
        pixels = min(pixels - 1, int(pixels * room / patch.shape[1]))
        patch = _patch(title.text, pixels, style, fonts)
    height, width = patch.shape
    left, top = style.anchor
    x = left * genre.width
    if left >= 0.5:
        x -= width if left > 0.5 else width / 2
    bottom = stamp_box(genre.height).y - 4
    y = min(top * genre.height, bottom - height)
    return Box(int(x) & ~1, int(y) & ~1, width, height), patch


def _patch(text: str, pixels: int, style: Style, fonts: FontBook) -> NDArray[np.uint8]:
    font = fonts.at(pixels)
    left, top, right, bottom = font.getbbox(text)
    margin = round(pixels * 0.3)
    width, height = (int(side + 2 * margin + 1) & ~1 for side in (right - left, bottom - top))
    image = Image.new("L", (width, height), style.paper)
    ImageDraw.Draw(image).text((margin - left, margin - top), text, font=font, fill=style.ink)
    return np.asarray(image)


def _refuse_missing_glyphs(text: str, fonts: FontBook) -> None:
    font = fonts.at(24)
    no_glyph = bytes(font.getmask(MISSING))
    for letter in set(text) - {" "}:
        if bytes(font.getmask(letter)) == no_glyph:
            raise MissingExtra("broadcast", f"drawing {letter!r}, which the font {fonts.name} lacks,")
