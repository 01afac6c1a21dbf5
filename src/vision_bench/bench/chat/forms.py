"""What is done to a medium before it is sent: fewer lines, its first seconds, or a control (black picture, no sound).

The envelope of a request that is the sender's: what the server does by itself (fps, max_pixels) is said in the body.
"""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vision_bench.drafts import write_whole

# The codec and imaging libraries are imported where they are needed: they take 60 MB, which a text does without.

Control = Literal["blackout", "muted"]


@dataclass(frozen=True, slots=True)
class Form:
    """How media are sent.

    Attributes:
        height: at most this many lines; never enlarged.
        seconds: of a film, its beginning.
        control: ``blackout`` makes every picture black, ``muted`` every sound silent; nothing else changes.
    """

    height: int | None = None
    seconds: float | None = None
    control: Control | None = None

    @property
    def is_plain(self) -> bool:
        """Media go as they are."""
        return self == Form()

    def film(self, data: bytes, name: str) -> bytes:
        """An MP4 in this form."""
        if self.is_plain:
            return data
        from vision_bench.media.probe import probe  # noqa: PLC0415
        from vision_bench.media.shrink import shrink  # noqa: PLC0415
        from vision_bench.media.variants import muted  # noqa: PLC0415

        made = shrink(data, height=self.height, seconds=self.seconds, is_black=self.control == "blackout", name=name)
        return muted(made) if self.control == "muted" and probe(made, name=name).has_audio else made

    def kept_film(self, data: bytes, name: str, folder: Path | None) -> bytes:
        """As ``film``; what was made once is taken from ``folder``, where one is given."""
        if folder is None or self.is_plain:
            return self.film(data, name)
        form = re.sub(r"\W+", "-", self.words())
        file = folder / f"{hashlib.sha256(data).hexdigest()[:16]}_{form}.mp4"
        if file.is_file():
            return file.read_bytes()
        made = self.film(data, name)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(file, made)
        return made

    def frames(self, frames: Any) -> Any:
        """(T, H, W, 3) RGB frames in this form."""
        if self.control == "blackout":
            frames = frames * 0
        if self.height is None or self.height >= frames.shape[1]:
            return frames
        import numpy as np  # noqa: PLC0415
        from PIL import Image  # noqa: PLC0415

        size = (max(1, round(frames.shape[2] * self.height / frames.shape[1])), self.height)
        return np.stack([np.asarray(Image.fromarray(one).resize(size, Image.Resampling.BOX)) for one in frames])

    def sound(self, samples: Any, rate: int) -> Any:
        """(N,) samples in this form; None stays None."""
        if samples is None:
            return None
        if self.seconds is not None:
            samples = samples[: round(self.seconds * rate)]
        return samples * 0 if self.control == "muted" else samples

    def picture(self, data: bytes, media_type: str) -> bytes:
        """A JPEG or PNG in this form."""
        if self.height is None and self.control != "blackout":
            return data
        from PIL import Image  # noqa: PLC0415

        with Image.open(io.BytesIO(data)) as opened:
            image = opened.convert("RGB")
        if self.height is not None and self.height < image.height:
            width = max(1, round(image.width * self.height / image.height))
            image = image.resize((width, self.height), Image.Resampling.BOX)
        if self.control == "blackout":
            image = Image.new("RGB", image.size)
        made = io.BytesIO()
        image.save(made, "PNG" if media_type == "image/png" else "JPEG", quality=95)
        return made.getvalue()

    def words(self) -> str:
        """For a reader of a percentile; empty where media go as they are."""
        said = [f"{self.height} lines"] if self.height else []
        said += [f"first {self.seconds:g} s"] if self.seconds else []
        return ", ".join([*said, *([self.control] if self.control else [])])
