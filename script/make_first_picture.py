"""Draw ``workloads/first_picture.jpg``, the picture that the realtime workloads start from: a valley with a road.

Every part looks different, so that a camera that moves is seen to move. The same bytes come of the same Pillow.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 832, 480
HORIZON = 235
SEED = 4
TARGET = Path(__file__).parent.parent / "workloads" / "first_picture.jpg"


def sky() -> Image.Image:
    """From blue above to warm at the horizon."""
    share = np.clip(np.arange(HEIGHT) / HORIZON, 0, 1)[:, None, None] ** 1.4
    colours = np.array([64, 112, 176]) * (1 - share) + np.array([246, 214, 170]) * share
    return Image.fromarray(np.broadcast_to(colours, (HEIGHT, WIDTH, 3)).astype(np.uint8))


def ridge(draws: np.random.Generator, base: float, rise: float) -> list[tuple[float, float]]:
    """The outline of a chain of hills: a few waves, none in step with another."""
    x = np.arange(0, WIDTH + 1, 4)
    y = np.full(len(x), float(base))
    for length in (310.0, 170.0, 83.0, 37.0):
        y -= rise * (length / 310) * np.sin(x / length * 2 * np.pi + draws.uniform(0, 2 * np.pi))
    return [(float(a), float(b)) for a, b in zip(x, y, strict=True)]


def main() -> None:
    """Draw and save."""
    draws = np.random.default_rng(SEED)
    picture = sky()
    draw = ImageDraw.Draw(picture)
    draw.ellipse((600, 120, 660, 180), fill=(255, 240, 205))
    for base, rise, colour in (
        (215, 34, (132, 146, 176)),
        (235, 24, (98, 120, 138)),
        (258, 16, (72, 104, 88)),
        (285, 10, (62, 98, 58)),
    ):
        draw.polygon([*ridge(draws, base, rise), (WIDTH, HEIGHT), (0, HEIGHT)], fill=colour)
    draw.polygon([(395, 285), (425, 285), (640, HEIGHT), (215, HEIGHT)], fill=(150, 136, 118))
    for near in (0.06, 0.16, 0.32, 0.56, 0.85):
        y, half = 285 + near * 195, 1.5 + near * 9
        draw.rectangle((420 - half, y, 420 + half, y + 6 + near * 26), fill=(232, 222, 196))
    for _ in range(70):
        near = float(draws.uniform(0.02, 1)) ** 1.5
        side = float(draws.choice([-1, 1])) * (40 + near * 250 + draws.uniform(0, 330))
        x, y, size = 416 + side, 288 + near * 180, 6 + near * 52
        green = tuple(int(value) for value in draws.integers((24, 58, 26), (70, 118, 62)))
        draw.rectangle((x - size * 0.06, y - size * 0.5, x + size * 0.06, y), fill=(82, 60, 44))
        draw.polygon(
            [(x - size * 0.4, y - size * 0.3), (x + size * 0.4, y - size * 0.3), (x, y - size * 1.5)], fill=green
        )
    picture.filter(ImageFilter.GaussianBlur(0.6)).save(TARGET, "JPEG", quality=88)


if __name__ == "__main__":
    main()
