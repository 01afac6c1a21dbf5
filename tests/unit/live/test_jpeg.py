"""The size that a JPEG's headers tell."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from vision_bench.live.jpeg import jpeg_size


def _jpeg(width: int, height: int, **options: object) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (200, 10, 60)).save(out, "JPEG", **options)
    return out.getvalue()


@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"comment": b"c" * 70}, {"exif": b"Exif\x00\x00" + b"\xff\xc0" * 40}]
)
def test_the_size_is_the_pictures(options: dict[str, object]) -> None:
    """Baseline and progressive, with comments and with metadata that looks like a header."""
    assert jpeg_size(_jpeg(70, 30, **options)) == (70, 30)


def test_what_is_no_whole_jpeg_has_no_size() -> None:
    """Other formats, a JPEG whose end or headers are missing, and nothing at all."""
    whole = _jpeg(70, 30)
    out = io.BytesIO()
    Image.new("RGB", (7, 3)).save(out, "PNG")
    for data in (b"", b"\xff\xd8\xff\xd9", whole[:-2], whole[2:], out.getvalue(), b"\xff\xd8\xff\xe0\x00\x00\xff\xd9"):
        assert jpeg_size(data) is None


def test_every_beginning_is_read_without_an_error() -> None:
    """Cut anywhere and closed again, it has its size or none: headers are never read beyond the end."""
    whole = _jpeg(70, 30)
    assert {jpeg_size(whole[:at] + b"\xff\xd9") for at in range(len(whole))} <= {None, (70, 30)}
