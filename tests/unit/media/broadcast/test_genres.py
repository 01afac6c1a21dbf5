"""The table of genres."""

from __future__ import annotations

import pytest

from vision_bench.errors import UnknownName
from vision_bench.media.broadcast.genres import GENRES, genre_named
from vision_bench.media.layout import TARGETS


def test_files_are_named_as_the_cutter_looks_for_them() -> None:
    """Every (category, file) that ``prepare --all`` walks has a genre that makes it; esports is lol.mp4."""
    assert {(genre.name, genre.file_name) for genre in GENRES.values()} == set(TARGETS)


def test_an_unknown_genre_is_told_the_known_ones() -> None:
    """The message holds the wrong name and all seven right ones."""
    with pytest.raises(UnknownName, match=r"'opera'.*news.*esports"):
        genre_named("opera")
