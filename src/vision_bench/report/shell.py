"""The shell of every report page with charts: one file that opens offline, light and dark.

Plotly's script comes out of its wheel and stands in the page once; a page without a figure does without.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jinja2

from vision_bench.drafts import write_whole
from vision_bench.errors import InvalidSettings, MissingTool
from vision_bench.report.section import Figure, Section, Tile


def render_page(
    title: str,
    sections: Sequence[Section],
    *,
    made_at: datetime,
    facts: Sequence[str] = (),
    tiles: Sequence[Tile] = (),
) -> str:
    """The page as text.

    Args:
        facts: what every number of the page must be read with, each a few words.
        made_at: when, as the page says.
    """
    figures = [figure for section in sections for figure in section.figures]
    return (
        environment()
        .get_template("shell.html.j2")
        .render(
            title=title,
            sections=sections,
            facts=list(facts),
            tiles=list(tiles),
            made_at=made_at,
            plotly=plotly_script() if figures else "",
            figure_json=figure_json,
        )
    )


def plotly_script() -> str:
    """Plotly's own script, 4.8 MB: its wheel has no smaller one."""
    found = find_spec("plotly")  # importing it would take longer than drawing
    if found is None or not found.submodule_search_locations:
        raise MissingTool("charts need the script of plotly; pip install plotly")
    return Path(found.submodule_search_locations[0], "package_data", "plotly.min.js").read_text(encoding="utf-8")


def figure_json(figure: Figure) -> str:
    """A figure as JSON that may stand inside a script element; numbers to six digits, infinities as gaps."""
    text = json.dumps(_plain({"data": list(figure.data), "layout": figure.layout}), ensure_ascii=False, allow_nan=False)
    # Inside <script> only these could end it, or begin a comment.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def shown(value: object) -> str:
    """A table's cell as text: three digits or more of a number, n/a for none."""
    if value is None:
        return "n/a"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or not math.isfinite(value):
        return f"{value:,}"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


def write_page(path: Path, html: str) -> None:
    """Put the page in place whole: under a temporary name first, then moved.

    Raises:
        InvalidSettings: it cannot be written there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, html.encode("utf-8", errors="replace"))  # half of an emoji is no reason to lose a page
    except OSError as problem:
        raise InvalidSettings(
            f"cannot write page {path} ({problem.filename or path}: {problem.strerror or problem}); "
            "free it, or give another --out"
        ) from problem


def environment() -> jinja2.Environment:
    """Where the templates lie, with everything escaped that is not ours."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("vision_bench.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters["shown"] = shown
    return made
