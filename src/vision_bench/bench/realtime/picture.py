"""The picture that a session starts from: a file, or an address, as the URL that the request carries."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from vision_bench.errors import InvalidRequest

PICTURES = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png", b"RIFF": "image/webp"}


class Picture:
    """Turns what a workload calls its picture into a URL, and remembers what it was.

    Args:
        folder: of the file that names it, looked at before the working directory; None for a flag.
    """

    def __init__(self, folder: Path | None, files: dict[str, str]) -> None:
        self._folder = folder
        self._files = files
        self.name: str | None = None

    def resolve(self, image: str) -> str:
        """An ``http(s)`` or ``data:`` URL as it is; a file as a ``data:`` URL."""
        if image.startswith(("http://", "https://")):
            self.name = image
            return image
        if image.startswith("data:"):
            self.name = f"data: URL, sha256 {hashlib.sha256(image.encode()).hexdigest()[:16]}"
            self._files["picture"] = hashlib.sha256(image.encode()).hexdigest()
            return image
        path = Path(image).expanduser()
        found = path if self._folder is None or not (self._folder / path).is_file() else self._folder / path
        try:
            data = found.read_bytes()
        except OSError as problem:
            raise InvalidRequest(
                f"picture {image!r} cannot be read ({problem.strerror or problem}); give a JPEG, PNG or WebP file, or "
                "an http(s) or data: URL"
            ) from problem
        media_type = next((name for start, name in PICTURES.items() if data.startswith(start)), None)
        if media_type is None:
            raise InvalidRequest(f"picture {image!r} is neither JPEG, PNG nor WebP")
        self.name = path.name
        self._files["picture"] = hashlib.sha256(data).hexdigest()
        return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
