"""Drawn pictures and speechless sounds for tests of perception."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from vision_bench.media.frames import DecodedFrames

WIDTH, HEIGHT = 320, 180

COLOURS = {
    "red": (220, 30, 30),
    "orange": (240, 130, 30),
    "yellow": (240, 215, 20),
    "green": (25, 175, 60),
    "cyan": (20, 200, 220),
    "blue": (35, 70, 225),
    "purple": (140, 60, 200),
    "magenta": (210, 40, 200),
    "white": (245, 245, 245),
}


def scenery(seed: int, *, shift: int = 0) -> np.ndarray:
    """A grey, clouded picture (H, W, 3); another seed is another place, ``shift`` moves the camera."""
    coarse = np.random.default_rng(seed).integers(30, 170, (30, 213), np.uint8)
    wide = np.asarray(Image.fromarray(coarse).resize((WIDTH * 4, HEIGHT), Image.Resampling.BICUBIC))
    return np.repeat(wide[:, shift : shift + WIDTH, None], 3, axis=2)


def with_shapes(
    picture: np.ndarray, outline: str, colour: str, count: int, *, side: int = 24, y: int = 40
) -> np.ndarray:
    """The picture with ``count`` shapes in a row."""
    image = Image.fromarray(picture)
    pen = ImageDraw.Draw(image)
    for number in range(count):
        x = 30 + number * round(side * 1.5)
        box = (x, y, x + side - 1, y + side - 1)
        if outline == "circle":
            pen.ellipse(box, fill=COLOURS[colour])
        elif outline == "square":
            pen.rectangle(box, fill=COLOURS[colour])
        else:
            pen.polygon([(x + side // 2, y), (x + side - 1, y + side - 1), (x, y + side - 1)], fill=COLOURS[colour])
    return np.asarray(image)


def clip(frames: list[np.ndarray], *, seconds: float = 6.0) -> DecodedFrames:
    """Frames evenly spread over ``seconds``."""
    return DecodedFrames(np.stack(frames), np.arange(len(frames)) * seconds / len(frames))


def font(pixels: int, *, weight: str = "Bold") -> ImageFont.FreeTypeFont:
    """NanumGothic, which holds Latin and Hangul letters of one hand."""
    found = find_spec("koreanize_matplotlib")
    assert found is not None and found.origin is not None, "install 'vision-bench[broadcast]'"
    return ImageFont.truetype(Path(found.origin).parent / "fonts" / f"NanumGothic{weight}.ttf", pixels)


def titled(picture: np.ndarray, text: str, *, pixels: int = 32, at: tuple[int, int] = (20, 20)) -> np.ndarray:
    """The picture with white letters on a black bar."""
    image = Image.fromarray(picture)
    pen, letters = ImageDraw.Draw(image), font(pixels)
    left, top, right, bottom = pen.textbbox(at, text, font=letters)
    pen.rectangle((left - 8, top - 8, right + 8, bottom + 8), fill=(0, 0, 0))
    pen.text(at, text, font=letters, fill=(255, 255, 255))
    return np.asarray(image)
