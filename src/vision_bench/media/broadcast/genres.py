"""The seven genres: their sizes, rates, file names and pace. The table every other module here is driven by."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

WINDOW_SECONDS = 6

NTSC = Fraction(30000, 1001)


@dataclass(frozen=True, slots=True)
class Genre:
    """One kind of programme.

    ``scene_seconds`` is the shortest and longest scene; ``bed`` is the sound under the speech.
    """

    name: str
    number: int
    file_name: str
    width: int
    height: int
    fps: Fraction
    scene_seconds: tuple[float, float]
    bed: Literal["room", "music", "crowd"]

    @property
    def is_hd(self) -> bool:
        """Whether the picture is tagged BT.709 (true) or SMPTE 170M, as broadcasters do by height."""
        return self.height >= 720


GENRES: dict[str, Genre] = {
    genre.name: genre
    for genre in (
        Genre("news", 0, "news.mp4", 1920, 1080, Fraction(30), (7.0, 12.0), "room"),
        Genre("docu", 1, "docu.mp4", 1920, 1080, Fraction(30), (8.0, 14.0), "music"),
        Genre("drama", 2, "drama.mp4", 720, 480, NTSC, (4.0, 8.0), "music"),
        Genre("hist_drama", 3, "hist_drama.mp4", 1920, 1080, NTSC, (5.0, 10.0), "music"),
        Genre("entertain", 4, "entertain.mp4", 1920, 1080, NTSC, (3.5, 6.0), "crowd"),
        Genre("baseball", 5, "baseball.mp4", 640, 360, NTSC, (5.0, 9.0), "crowd"),
        # The experiment's esports source is called lol.mp4, so ours is too.
        Genre("esports", 6, "lol.mp4", 1920, 1080, Fraction(60), (7.0, 12.0), "crowd"),
    )
}
