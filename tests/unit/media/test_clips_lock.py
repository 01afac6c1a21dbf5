"""One run at a time in a folder of clips."""

from __future__ import annotations

from pathlib import Path

import pytest

from vision_bench.errors import InvalidSettings
from vision_bench.media.lock import only_run_in


def test_a_second_run_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    """By name, escaped; afterwards it may, and nothing lies in the folder."""
    folder = tmp_path / "a\nb"
    with (
        only_run_in(folder),
        pytest.raises(InvalidSettings, match=r"another prepare is cutting into .*a\\nb; wait for it"),
        only_run_in(folder),
    ):
        pass
    with only_run_in(folder):
        assert list(folder.iterdir()) == []


def test_another_folder_is_free(tmp_path: Path) -> None:
    """Two scenes are cut at once."""
    with only_run_in(tmp_path / "a"), only_run_in(tmp_path / "b"):
        assert (tmp_path / "b").is_dir()
