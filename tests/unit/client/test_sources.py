"""client.sources: only what ends is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vision_bench.client.sources import find_clips
from vision_bench.errors import InvalidRequest


def test_pipes_and_devices_are_refused_by_name_and_passed_over_in_folders(tmp_path: Path) -> None:
    """A pipe named .mp4, a link to an endless device."""
    os.mkfifo(tmp_path / "pipe.mp4")
    (tmp_path / "zero.mp4").symlink_to("/dev/zero")
    for name in ("pipe.mp4", "zero.mp4"):
        with pytest.raises(InvalidRequest, match=f"{name} is no regular file"):
            find_clips([tmp_path / name])
    assert find_clips([tmp_path]) == []


def test_a_file_that_cannot_be_opened_is_left_to_fail_as_a_clip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own line says why; the others go on."""
    clip = tmp_path / "a.mp4"
    clip.write_bytes(b"x")

    def refuse(file: Path) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr("vision_bench.client.sources.probe", refuse)
    assert find_clips([clip], cut=lambda film: []) == [clip]
