"""The picture of a programme, frame by frame, as planar 4:2:0 in one reused buffer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from vision_bench.media.broadcast.genres import Genre
from vision_bench.media.broadcast.plan import BACKGROUNDS, Programme, Scene
from vision_bench.media.broadcast.shapes import COLOURS, Outline, ShapeGroup, positions
from vision_bench.media.broadcast.stamp import Stamp, draw_stamp

BLACK, WHITE, NEUTRAL = 16, 235, 128
FLASH_SECONDS = 0.1

CLOUD_PIXELS, CLOUD_LUMA, GRAIN_LUMA = 24, 11.0, 1.5


class Canvas:
    """One frame: ``buffer`` (H * 3 / 2, W) uint8 holds ``luma`` (H, W) and both ``chroma`` (2, H / 2, W / 2)."""

    def __init__(self, genre: Genre) -> None:
        width, height = genre.width, genre.height
        self.buffer = np.empty((height * 3 // 2, width), np.uint8)
        flat = self.buffer.reshape(-1)
        self.luma = flat[: width * height].reshape(height, width)
        self.chroma = flat[width * height :].reshape(2, height // 2, width // 2)

    def fill(self, luma: int) -> None:
        """Make the whole picture one grey."""
        self.luma[:] = luma
        self.chroma[:] = NEUTRAL


class ScenePainter:
    """Draws the frames of one scene; what does not change within the scene is made once."""

    def __init__(self, programme: Programme, scene: Scene) -> None:
        self._programme, self._scene, self._genre = programme, scene, programme.genre
        fps = float(self._genre.fps)
        flash_frames = max(1, round(FLASH_SECONDS * fps))
        self._flash = {mark.frame + later for mark in scene.marks if mark.flash for later in range(flash_frames)}
        if not scene.is_black:
            self._background = _background(programme, scene)
            self._sprites = [(group, *_sprite(group, self._genre)) for group in scene.groups]

    def paint(self, canvas: Canvas, frame: int) -> None:
        """Draw ``frame`` (of the file) into ``canvas``."""
        scene = self._scene
        flashes = frame in self._flash
        if scene.is_black:
            canvas.fill(BLACK)
        elif flashes:
            canvas.fill(WHITE)
        else:
            self._paint_world(canvas, frame)
        for shown in scene.titles:
            if shown.first_frame <= frame < shown.end_frame:
                x, y, width, height = shown.box
                canvas.luma[y : y + height, x : x + width] = shown.patch
                canvas.chroma[:, y // 2 : (y + height) // 2, x // 2 : (x + width) // 2] = NEUTRAL
        if self._programme.has_stamp:
            draw_stamp(canvas.luma, Stamp(self._genre.number, frame), lit=flashes)

    def _paint_world(self, canvas: Canvas, frame: int) -> None:
        scene, width = self._scene, self._genre.width
        passed = 0 if scene.kind == "frozen" else frame - scene.first_frame
        slack = self._background.shape[1] - width
        # The camera turns back at the end of the painted background.
        offset = abs(scene.pan) * passed % (2 * slack) if slack else 0
        offset = min(offset, 2 * slack - offset)
        if scene.pan < 0:
            offset = slack - offset
        canvas.luma[:] = self._background[:, offset : offset + width]
        canvas.chroma[:] = NEUTRAL
        progress = passed / max(1, scene.end_frame - scene.first_frame - 1)
        for group, mask, half_mask, colour in self._sprites:
            side, half = group.side, group.side // 2
            for x, y in positions(group, self._genre, progress):
                np.copyto(canvas.luma[y : y + side, x : x + side], colour[0], where=mask)
                for plane, level in zip(canvas.chroma, colour[1:], strict=True):
                    np.copyto(plane[y // 2 : y // 2 + half, x // 2 : x // 2 + half], level, where=half_mask)


def _background(programme: Programme, scene: Scene) -> NDArray[np.uint8]:
    """(H, W + slack) luma: a soft sky over two ridges, clouded so that every motion shows, with a little grain."""
    genre, light = programme.genre, np.float32(BACKGROUNDS[scene.background])
    height = genre.height
    slack = min(genre.width, abs(scene.pan) * (scene.end_frame - scene.first_frame))
    width = genre.width + slack
    rng = np.random.default_rng((programme.seed & 0xFFFFFFFF, genre.number, scene.number, 1))
    luma = rng.standard_normal((height, width), np.float32) * np.float32(GRAIN_LUMA)
    luma += _clouds(rng, height, width)
    shade = np.broadcast_to(np.linspace(1.15, 0.9, height, dtype=np.float32)[:, None], (height, width)).copy()
    rows = np.arange(height)[:, None]
    for ridge_top, ridge_shade in ((0.55, 0.72), (0.78, 0.5)):
        shade[rows > _ridge(rng, width, height) + ridge_top * height] = ridge_shade
    luma += shade * light
    return np.asarray(np.clip(luma, 28, 200), np.uint8)


def _clouds(rng: np.random.Generator, height: int, width: int) -> NDArray[np.float32]:
    """(H, W) soft light and dark patches around 0."""
    patch = CLOUD_PIXELS * max(1, height // 360)
    coarse = rng.standard_normal((height // patch + 2, width // patch + 2), np.float32) * np.float32(CLOUD_LUMA)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC), np.float32)


def _ridge(rng: np.random.Generator, width: int, height: int) -> NDArray[np.float64]:
    """(W,) how far a ridge's crest lies below its mean height, pixels."""
    places = np.arange(width) / height
    crest = np.zeros(width)
    for waves, part in ((0.7, 0.06), (2.3, 0.03), (9.0, 0.008)):
        crest += part * height * np.sin(2 * np.pi * (waves * places + rng.random()))
    return crest


def _sprite(group: ShapeGroup, genre: Genre) -> tuple[NDArray[np.bool_], NDArray[np.bool_], tuple[int, int, int]]:
    """The shape's mask (side, side), the mask of its chroma, and its colour as Y, U, V."""
    mask = _mask(group.outline, group.side)
    return mask, mask[::2, ::2], yuv(COLOURS[group.colour][0], is_hd=genre.is_hd)


def _mask(outline: Outline, side: int) -> NDArray[np.bool_]:
    image = Image.new("L", (side, side), 0)
    pen = ImageDraw.Draw(image)
    if outline == "circle":
        pen.ellipse((0, 0, side - 1, side - 1), fill=255)
    elif outline == "square":
        pen.rectangle((0, 0, side - 1, side - 1), fill=255)
    else:
        pen.polygon([(side // 2, 0), (side - 1, side - 1), (0, side - 1)], fill=255)
    return np.asarray(image) > 127


def yuv(rgb: tuple[int, int, int], *, is_hd: bool) -> tuple[int, int, int]:
    """An sRGB colour as 8-bit limited-range Y, U, V: BT.709 for HD, BT.601 below."""
    red, green, blue = rgb
    weight_red, weight_blue = (0.2126, 0.0722) if is_hd else (0.299, 0.114)
    luma = weight_red * red + (1 - weight_red - weight_blue) * green + weight_blue * blue
    u = (blue - luma) / (2 * (1 - weight_blue))
    v = (red - luma) / (2 * (1 - weight_red))
    return round(16 + luma * 219 / 255), round(128 + u * 224 / 255), round(128 + v * 224 / 255)
