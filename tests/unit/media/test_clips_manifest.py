"""The manifest on disk: whole or not there, and any file name in it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from vision_bench.media.manifest import FORMAT, file_hash, finished, read_manifest, write_manifest


def test_a_name_of_any_bytes_comes_back(tmp_path: Path) -> None:
    """Korean, a line break and bytes that are not UTF-8 survive; the file itself is plain ASCII."""
    name = os.fsdecode("뉴스\n".encode() + b"\xff.mp4")
    write_manifest(tmp_path, {"format": FORMAT, "source": {"name": name}})
    found = read_manifest(tmp_path)
    assert found is not None and found["source"]["name"] == name
    assert (tmp_path / "clips.json").read_bytes().isascii()
    assert [path.name for path in tmp_path.iterdir()] == ["clips.json"]


def test_what_is_no_manifest_is_none(tmp_path: Path) -> None:
    """Missing, half written, another format: the clips are made anew."""
    assert read_manifest(tmp_path) is None
    for text in ('{"format": 1, "cli', "[]", json.dumps({"format": FORMAT + 1})):
        (tmp_path / "clips.json").write_text(text)
        assert read_manifest(tmp_path) is None


def test_finished_means_byte_for_byte(tmp_path: Path) -> None:
    """Same size and another byte is not finished; nor is an empty file."""
    clip = tmp_path / "a.mp4"
    clip.write_bytes(b"clip")
    entry = {"file": "a.mp4", "bytes": 4, "sha256": file_hash(clip)}
    assert finished(tmp_path, entry)
    clip.write_bytes(b"clop")
    assert not finished(tmp_path, entry)
    clip.write_bytes(b"")
    assert not finished(tmp_path, entry)
    clip.unlink()
    assert not finished(tmp_path, entry)
