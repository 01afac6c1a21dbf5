"""Frames, sound or a file as bytes that a request, a page or a disk takes."""

from __future__ import annotations

import base64
import io
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vision_bench.errors import InvalidMedia, InvalidRequest
from vision_bench.media.frames import decode_frames
from vision_bench.media.probe import probe
from vision_bench.media.tracks import require_picture

_DARK_LUMA = 24
"""Mean brightness (0 to 255) under which a first frame says nothing about its clip."""


def data_uri(data: bytes, media_type: str) -> str:
    """``data:video/mp4;base64,...``: the one form that every server reads.

    No parameters, lower-case ``base64``, the standard alphabet with padding, no line breaks.
    """
    if media_type.count("/") != 1 or any(letter in media_type for letter in " ;,\r\n"):
        raise InvalidRequest(f"media type {media_type!r} is not of the form type/subtype, such as video/mp4")
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"


def jpeg(frame: NDArray[np.uint8], *, quality: int = 85) -> bytes:
    """One (H, W, 3) RGB frame as a JPEG file."""
    buffer = io.BytesIO()
    Image.fromarray(frame).save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def wav(samples: NDArray[np.float32], rate: int) -> bytes:
    """(N,) mono samples in [-1, 1] as a 16-bit WAV file; louder ones are clipped."""
    if samples.ndim != 1:
        raise InvalidRequest(f"sound of shape {samples.shape}; give one channel of shape (N,)")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(np.round(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return buffer.getvalue()


def thumbnail(source: Path, *, width: int = 320) -> bytes:
    """A small JPEG of the clip: its first frame, or its middle one when the first is black.

    Raises:
        InvalidMedia: no frame can be decoded.
    """
    if width < 1:
        raise InvalidRequest(f"a thumbnail of width {width}; give one or more pixels")
    picture = _first_decodable(source)
    if picture.mean() < _DARK_LUMA:
        try:
            middle = require_picture(probe(source)).frames // 2
            picture = decode_frames(source, indices=[middle]).frames[0]
        except InvalidMedia:
            pass
    image = Image.fromarray(picture)
    if image.width > width:
        image = image.resize((width, max(1, round(image.height * width / image.width))), Image.Resampling.BOX)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


def _first_decodable(source: Path) -> NDArray[np.uint8]:
    try:
        decoded = decode_frames(source, indices=[0])
    except InvalidMedia:  # The first frame is damaged; a later one may not be.
        decoded = decode_frames(source)
    picture: NDArray[np.uint8] = decoded.frames[0]
    return picture
