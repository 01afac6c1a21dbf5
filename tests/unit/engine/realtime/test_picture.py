"""engine.realtime.picture: from a reference to planes."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from vision_bench.engine.realtime.conditioning import EngineFailure
from vision_bench.engine.realtime.picture import open_picture


def url_of(image: Image.Image, form: str = "PNG", **options: object) -> str:
    """The picture as a ``data:`` URL."""
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return f"data:image/{form.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"


@pytest.mark.parametrize(
    ("colour", "expected"),
    [("white", (235, 128, 128)), ("black", (16, 128, 128)), ("red", (82, 90, 240)), ("blue", (41, 240, 110))],
)
def test_colours_are_those_of_bt601(colour: str, expected: tuple[int, int, int]) -> None:
    """The values that every player assumes for a picture of this size."""
    planes = open_picture(url_of(Image.new("RGB", (64, 48), colour)), width=64, height=48)
    assert (planes.luma[0, 0], planes.blue[0, 0], planes.red[0, 0]) == pytest.approx(expected, abs=1)
    assert (planes.luma.shape, planes.blue.shape, planes.red.shape) == ((48, 64), (24, 32), (24, 32))


def test_a_picture_of_another_shape_is_cropped_not_stretched() -> None:
    """A square in the middle of a wide picture stays a square."""
    wide = Image.new("L", (400, 100))
    wide.paste(255, (175, 25, 225, 75))
    luma = open_picture(url_of(wide), width=96, height=96).luma > 128
    assert abs(int(luma.any(axis=0).sum()) - int(luma.any(axis=1).sum())) <= 1


def test_a_picture_on_its_side_is_put_upright() -> None:
    """The orientation that a camera writes is followed."""
    image = Image.new("L", (64, 32))
    image.paste(255, (0, 0, 32, 32))
    turned = Image.Exif()
    turned[274] = 6  # to be turned by a quarter, with the clock
    luma = open_picture(url_of(image, "JPEG", exif=turned), width=32, height=64).luma
    assert luma[:24].mean() > 200
    assert luma[40:].mean() < 50


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
@pytest.mark.parametrize("mode", ["RGB", "L", "P"])
def test_what_a_browser_shows_is_opened(form: str, mode: str) -> None:
    """Colour, grey and palette in each format that has them."""
    if (form, mode) == ("JPEG", "P"):
        mode = "CMYK"
    image = Image.new("RGB", (32, 32), "red").convert(mode)
    assert open_picture(url_of(image, form), width=32, height=32).luma.shape == (32, 32)


def test_half_a_file_is_no_picture() -> None:
    """A header alone does not do."""
    head, _, payload = url_of(Image.fromarray(np.zeros((64, 64), np.uint8))).partition(",")
    with pytest.raises(EngineFailure, match="no picture that can be decoded"):
        open_picture(f"{head},{payload[: len(payload) // 8 * 4]}", width=64, height=64)
