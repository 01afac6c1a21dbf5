"""Finding a font that draws Hangul."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.media.broadcast.rig import hangul_font

from vision_bench.errors import MissingExtra
from vision_bench.media.broadcast import fonts
from vision_bench.media.broadcast.genres import GENRES
from vision_bench.media.broadcast.overlay import place_title
from vision_bench.media.broadcast.script import Title


def test_no_font_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what it is for and how to install it."""
    monkeypatch.setattr(fonts, "PACKAGED", (("no-such-distribution", "x.ttf"),))
    monkeypatch.setattr(fonts, "INSTALLED", (("/no/such/font.ttf", 0),))
    with pytest.raises(MissingExtra, match=r"Hangul.*vision-bench\[broadcast\]"):
        fonts.find_font()


def test_a_letter_that_the_font_lacks_is_refused() -> None:
    """A label never names letters that were drawn as an empty box."""
    with pytest.raises(MissingExtra, match="lacks"):
        place_title(Title("\U00013000", "en", "caption"), GENRES["drama"], hangul_font())


def test_a_long_title_is_made_to_fit() -> None:
    """It is set smaller until it fits the picture's width, and stays inside it."""
    genre = GENRES["baseball"]
    box, patch = place_title(Title("가나다라 " * 20, "ko", "headline"), genre, hangul_font())
    assert box.x + box.width <= genre.width
    assert patch.shape == (box.height, box.width)


def test_the_font_has_a_name() -> None:
    """It stands in the labels, because boxes follow from it."""
    assert hangul_font().name.strip()


def test_finding_a_font_does_not_load_its_package() -> None:
    """koreanize_matplotlib would load matplotlib; its file is found without importing it."""
    source = Path(fonts.__file__).read_text(encoding="utf-8")
    assert "import koreanize" not in source
