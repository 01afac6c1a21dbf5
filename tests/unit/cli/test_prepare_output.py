"""What `prepare` prints of names that a user chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from vision_bench.cli.prepare_output import print_outcome
from vision_bench.media.scene import Prepared


def test_every_name_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """A line break or an escape sequence in a file's name is in its folder's name too: neither reaches the terminal."""
    manifest = {"source": {"name": "a\n\x1b[2Jb.mp4", "warnings": ["no_audio: none"]}, "not_made": [], "clips": []}
    folder = Path("data/clips/news/a\n\x1b[2Jb")
    print_outcome(Prepared("news/a\n\x1b[2Jb", folder, manifest, 1, 1, 0, (), is_short=False))
    printed = capsys.readouterr().err
    assert printed.splitlines() == [
        "warning: a\\n\\x1b[2Jb.mp4: no_audio: none",
        "a\\n\\x1b[2Jb.mp4: 1 clips made of 1; in data/clips/news/a\\n\\x1b[2Jb",
    ]
