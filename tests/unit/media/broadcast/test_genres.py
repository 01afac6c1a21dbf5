"""The table of genres."""

from __future__ import annotations

from vision_bench.media.broadcast.genres import GENRES
from vision_bench.media.layout import TARGETS


def test_files_are_named_as_the_cutter_looks_for_them() -> None:
    """Every (category, file) that ``prepare --all`` walks has a genre that makes it; esports is lol.mp4."""
    assert {(genre.name, genre.file_name) for genre in GENRES.values()} == set(TARGETS)
