"""A session's first picture, from the text of its reference to planes of the deployed size. Fetches nothing."""

from __future__ import annotations

import base64
import binascii
import io
from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from vision_bench.engine.realtime.conditioning import EngineFailure

MAX_PIXELS = 4096 * 4096
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF")
"""What a browser shows. The library knows many more, and nobody means them."""

Plane = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Planes:
    """A picture as a video encoder takes it: full brightness, and two colour planes of half the sides."""

    luma: Plane
    """(H, W)"""
    blue: Plane
    """(H / 2, W / 2)"""
    red: Plane
    """(H / 2, W / 2)"""


def open_picture(image_url: str, *, width: int, height: int) -> Planes:
    """The picture behind a ``data:`` URL, cropped to the shape and scaled to the size. Takes milliseconds.

    Raises:
        EngineFailure: it is not base64, no picture, too large, or lies behind an http(s) URL.
    """
    head, comma, payload = image_url.partition(",")
    if not head.lower().startswith("data:"):
        host = urlsplit(image_url).hostname or "the host"
        raise EngineFailure(f"400: this engine fetches no pictures, image_reference names {host}; send a data: URL")
    if not comma or not head.lower().endswith(";base64"):
        raise EngineFailure("400: image_reference.image_url must be data:image/...;base64,<bytes>")
    try:
        data = base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise EngineFailure("400: image_reference.image_url holds what is not base64") from None
    return planes(_fitted(data, width, height))


def _fitted(data: bytes, width: int, height: int) -> Image.Image:
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise EngineFailure(f"image has {image.width}x{image.height} pixels; at most {MAX_PIXELS} are taken")
            upright = ImageOps.exif_transpose(image).convert("RGB")
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError):
        raise EngineFailure("image_reference holds no picture that can be decoded") from None
    return ImageOps.fit(upright, (width, height), Image.Resampling.BICUBIC)


def planes(image: Image.Image) -> Planes:
    """Brightness and colour of an RGB picture with even sides, in the narrow range of BT.601 that players assume."""
    red, green, blue = np.moveaxis(np.asarray(image, np.float32), -1, 0)
    luma = 16 + 0.257 * red + 0.504 * green + 0.098 * blue
    towards_blue = 128 - 0.148 * red - 0.291 * green + 0.439 * blue
    towards_red = 128 + 0.439 * red - 0.368 * green - 0.071 * blue
    return Planes(_whole(luma), _whole(_halved(towards_blue)), _whole(_halved(towards_red)))


def _halved(plane: NDArray[np.float32]) -> NDArray[np.float32]:
    height, width = plane.shape
    halved: NDArray[np.float32] = plane.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))
    return halved


def _whole(plane: NDArray[np.float32]) -> Plane:
    return np.clip(np.rint(plane), 0, 255).astype(np.uint8)
