"""What a report page is made of, without a word of HTML: sections of text, figures, tables and cards.

All text is plain; the page escapes it. A figure's colours are names of the page's own (``var(--c1)`` to ``var(--c8)``,
``var(--ink)``, ``var(--fail)`` …), which have a light and a dark value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Cell = str | float | int | None
"""Of a table. A number is shown with the digits it needs; None as n/a."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A Plotly figure as plain JSON.

    Attributes:
        data, layout: as Plotly takes them; the page adds fonts, colours and margins.
        says: the figure in one sentence, for who does not see it.
        height: pixels.
    """

    data: Sequence[Json]
    layout: Json
    says: str
    height: int = 360


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head. ``marks`` colours a row: ``ok``, ``warn``, ``fail`` or "" for each."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    marks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Card:
    """One thing with a picture: a request, a session, an envelope. ``picture`` is a data: URI."""

    name: str
    badge: str
    lead: str
    facts: Sequence[tuple[str, Cell]] = ()
    kind: str = "ok"
    picture: str | None = None


@dataclass(frozen=True, slots=True)
class Tile:
    """One number of the page's head; ``kind`` is ``good``, ``bad`` or ""."""

    value: Cell
    label: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One subject. Everything but the title may be missing; ``notes`` stand under the figures.

    ``folded``: the table is behind a line that opens it, for numbers that the figure shows already.
    """

    title: str
    text: str = ""
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    cards: Sequence[Card] = ()
    notes: Sequence[str] = ()
    is_folded: bool = False
