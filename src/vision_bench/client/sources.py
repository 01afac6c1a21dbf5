"""PATHs of a command line to clips: folders are walked, films that were never cut are cut on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from vision_bench.errors import InvalidMedia, InvalidRequest
from vision_bench.media.layout import MANIFEST_NAME
from vision_bench.media.probe import probe

SLACK_SECONDS = 1.0
"""A clip may be this much longer than its nominal length and still is one clip."""

Cutter = Callable[[Path], Sequence[Path]]


def find_clips(
    paths: Sequence[Path],
    *,
    length_seconds: float = 6.0,
    cut: Cutter | None = None,
) -> list[Path]:
    """Clips under ``paths``, each file once, in the order given and by name within a folder.

    Args:
        length_seconds: a file longer than this (and a second) is a film, not a clip.
        cut: makes clips of a film, or of a file that is not MP4; None sends files as they are.

    Raises:
        InvalidRequest: a path that does not exist, or is neither a file nor a folder.
        InvalidMedia: a film that cannot be cut.
    """
    clips: dict[Path, Path] = {}
    for file in _files(paths):
        for clip in cut(file) if cut and _is_uncut(file, length_seconds) else (file,):
            clips.setdefault(clip.resolve(), clip)
    return list(clips.values())


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            found = (file for file in path.rglob("*") if file.suffix.lower() == ".mp4" and file.is_file())
            yield from sorted(file for file in found if not file.name.startswith("."))  # a dot: still being written
        elif path.is_file():
            yield path
        elif path.exists():  # a pipe or a device may never end
            raise InvalidRequest(f"{path} is no regular file; name a clip, a film or a folder of clips")
        else:
            raise InvalidRequest(f"no such file or folder: {path}")


def _is_uncut(file: Path, length_seconds: float) -> bool:
    """Whether a file must be cut before it can be sent. One that cannot be read is left to fail as a clip."""
    if file.suffix.lower() != ".mp4":
        return True
    if (file.parent / MANIFEST_NAME).exists():  # `prepare` made what lies beside it
        return False
    try:
        return probe(file).duration_seconds > length_seconds + SLACK_SECONDS
    except (InvalidMedia, OSError):
        return False
