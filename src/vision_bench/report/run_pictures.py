"""Thumbnails of what was sent, for as long as the media are where the workload had them."""

from __future__ import annotations

import io
from pathlib import Path

from vision_bench.errors import VisionBenchError

WIDTH = 320  # pixels: sharp at a card's width, 5 to 15 kB each


class Pictures:
    """Finds media by name under one folder, and makes each thumbnail once."""

    def __init__(self, clips: Path | None) -> None:
        self._clips = clips
        self._paths: dict[str, Path] | None = None
        self._made: dict[str, str | None] = {}

    def of(self, item: str) -> str | None:
        """A data: URI; None for what is not there or cannot be decoded."""
        if item not in self._made:
            self._made[item] = self._make(item)
        return self._made[item]

    def _make(self, item: str) -> str | None:
        path = self._find(item)
        if path is None:
            return None
        from vision_bench.media.encode import data_uri, thumbnail  # noqa: PLC0415 - 60 MB of codecs, if a clip is there

        try:
            if path.suffix.lower() in (".jpg", ".jpeg", ".png"):
                return data_uri(picture_thumbnail(path), "image/jpeg")
            return data_uri(thumbnail(path, width=WIDTH), "image/jpeg")
        except (VisionBenchError, OSError, ValueError):
            return None

    def _find(self, item: str) -> Path | None:
        if self._paths is None:
            root = self._clips
            files = [] if root is None else [root] if root.is_file() else root.rglob("*") if root.is_dir() else []
            self._paths = {path.name: path for path in files if path.is_file()}
        return self._paths.get(item)


def picture_thumbnail(path: Path) -> bytes:
    """A still picture as a small JPEG.

    Raises:
        OSError: it is no picture.
    """
    from PIL import Image  # noqa: PLC0415

    with Image.open(path) as image:
        small = image.convert("RGB")
        small.thumbnail((WIDTH, WIDTH * 4))
        buffer = io.BytesIO()
        small.save(buffer, "JPEG", quality=80)
        return buffer.getvalue()
