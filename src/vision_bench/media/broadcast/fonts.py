"""Where a font that draws Hangul is found: packages of the extra first, then the system's."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from PIL import ImageFont

from vision_bench.errors import MissingExtra

# (distribution, font file in it). Their modules are never imported: koreanize_matplotlib's would load matplotlib.
PACKAGED = (
    ("pylopdf-fonts-ko", "pylopdf_fonts_ko/NotoSansKR-Regular.otf"),
    ("koreanize-matplotlib", "koreanize_matplotlib/fonts/NanumGothicBold.ttf"),
)
# (file, index of the Korean cut in a collection)
INSTALLED = (
    ("/usr/share/fonts/opentype/noto/NotoSansCJK-Bold.ttc", 1),
    ("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", 1),
    ("/usr/share/fonts/truetype/nanum/NanumGothicBold.ttf", 0),
    ("/usr/share/fonts/truetype/nanum/NanumGothic.ttf", 0),
)


class FontBook:
    """One typeface at any size."""

    def __init__(self, path: Path, index: int = 0) -> None:
        self._path, self._index = path, index
        self._sizes: dict[int, ImageFont.FreeTypeFont] = {}
        family, style = self.at(16).getname()
        self.name = f"{family or path.stem} {style or ''}".strip()

    def at(self, pixels: int) -> ImageFont.FreeTypeFont:
        """The typeface at that many pixels an em."""
        if pixels not in self._sizes:
            self._sizes[pixels] = ImageFont.truetype(str(self._path), pixels, index=self._index)
        return self._sizes[pixels]


def find_font() -> FontBook:
    """A font that draws Hangul.

    Raises:
        MissingExtra: neither a package nor the system has one.
    """
    for name, inside in PACKAGED:
        try:
            path = Path(str(distribution(name).locate_file(inside)))
        except PackageNotFoundError:
            continue
        if path.is_file():
            return FontBook(path)
    for file, index in INSTALLED:
        if Path(file).is_file():
            return FontBook(Path(file), index)
    raise MissingExtra("broadcast", "drawing Hangul text (or a system font such as fonts-noto-cjk)")
