"""cli.analyze: what the system says against cutting is one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from vision_bench.cli.analyze import command
from vision_bench.errors import InvalidSettings


def test_a_film_that_cannot_be_cut_for_want_of_room_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The film, the place, and the ways out."""
    film = tmp_path / "film.mkv"
    film.write_bytes(b"x")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "/clips")

    monkeypatch.setattr("vision_bench.media.clips.cut_whole", full)
    with pytest.raises(InvalidSettings, match=r"film\.mkv \(/clips: No space left.*--data-dir.*--no-cut"):
        command.main([str(film)], standalone_mode=False)
