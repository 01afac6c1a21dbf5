"""``clips.json`` beside the clips: what was cut from what, by which encoder, and what was odd."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vision_bench.drafts import write_whole
from vision_bench.media.layout import MANIFEST_NAME
from vision_bench.media.plan import Window
from vision_bench.media.tracks import MediaInfo

FORMAT = 1
_HASH_BLOCK_BYTES = 1 << 20


def file_hash(path: Path) -> str:
    """SHA-256 of a file, hex."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(_HASH_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest in ``folder``; None when there is none that can be used."""
    try:
        found = json.loads((folder / MANIFEST_NAME).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Put it in place whole. Pure ASCII, so that a file name of any bytes survives as escapes."""
    write_whole(folder / MANIFEST_NAME, json.dumps(manifest, indent=1, ensure_ascii=True) + "\n")


def source_entry(path: Path, sha256: str, info: MediaInfo) -> dict[str, Any]:
    """The source: its name, hash and probe."""
    return {
        "name": path.name,
        "sha256": sha256,
        "bytes": info.size_bytes,
        "container": info.container,
        "duration_seconds": round(info.duration_seconds, 6),
        "video": _track(info.video),
        "audio": [_track(track) for track in info.audio],
        "warnings": list(info.warnings),
    }


def clip_entry(path: Path, window: Window, info: MediaInfo, warnings: list[str]) -> dict[str, Any]:
    """A finished clip, counted from its own packets."""
    video = info.video
    assert video is not None  # noqa: S101  a clip was checked to have a picture before it got its name
    sound = info.audio[0] if info.has_audio else None
    return {
        "file": path.name,
        "seq": window.seq,
        "start_seconds": float(window.start),
        "end_seconds": float(window.end),
        "first_frame": window.first,
        "frames": video.frames,
        "duration_seconds": round(video.duration_seconds, 6),
        "audio_seconds": None if sound is None else round(sound.duration_seconds, 6),
        "width": video.width,
        "height": video.height,
        "fps": None if video.fps is None else round(float(video.fps), 6),
        "is_constant_rate": video.is_constant_rate,
        "bytes": info.size_bytes,
        "sha256": file_hash(path),
        "has_audio": info.has_audio,
        "warnings": warnings,
    }


def skipped_entry(window: Window, reason: str) -> dict[str, Any]:
    """A window that was not cut, and why."""
    return {
        "seq": window.seq,
        "start_seconds": float(window.start),
        "end_seconds": float(window.end),
        "held_seconds": round(float(window.held), 6),
        "reason": reason,
    }


def finished(folder: Path, entry: Mapping[str, Any]) -> bool:
    """The clip that ``entry`` names is there, byte for byte."""
    path = folder / str(entry["file"])
    return path.is_file() and path.stat().st_size == entry["bytes"] and file_hash(path) == entry["sha256"]


def _track(track: Any) -> dict[str, Any] | None:
    """A probe's track as JSON: fractions as ``30000/1001``."""
    if track is None:
        return None
    plain = asdict(track)
    return {
        key: value if value is None or isinstance(value, bool | int | str) else _number(value)
        for key, value in plain.items()
    }


def _number(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else str(value)
