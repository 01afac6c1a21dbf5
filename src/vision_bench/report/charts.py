"""Numbers to shapes: what the page draws as inline SVG. Nothing here knows HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vision_bench.report.clips import Card

STRIP_WIDTH = 1000.0
STRIP_HEIGHT = 120.0
LABEL_WIDTH = 92.0
"""Room to the right of the bars for the names of the rules, so that no name lies on a bar."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One clip of the latency strip, in the strip's own units from its top left corner."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A horizontal line across the strip at a percentile. ``text_y`` keeps two close labels apart."""

    y: float
    text_y: float
    label: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The time each clip took, in the order of the clips. Without one measured time there is nothing to draw."""

    bars: tuple[Bar, ...]
    rules: tuple[Rule, ...]
    width: float = STRIP_WIDTH + LABEL_WIDTH
    height: float = STRIP_HEIGHT


def latency_strip(cards: Sequence[Card], *, p50: float | None, p90: float | None) -> Strip | None:
    """A bar a clip, by path; a clip without a time gets a stub on the ground line, so that no clip is left out."""
    times = [card.line.elapsed_ms for card in cards if card.line.elapsed_ms]
    if not times:
        return None
    scale = STRIP_HEIGHT / (max(times) * 1.08)
    pitch = STRIP_WIDTH / len(cards)
    bars = []
    for index, card in enumerate(sorted(cards, key=lambda card: (card.line.clip, card.line.fingerprint))):
        elapsed_ms = card.line.elapsed_ms
        height = max(3.0, (elapsed_ms or 0.0) * scale)
        shown = "no time" if elapsed_ms is None else f"{elapsed_ms:,.0f} ms"
        bars.append(
            Bar(
                x=round(index * pitch, 2),
                y=round(STRIP_HEIGHT - height, 2),
                width=round(max(pitch * 0.78, 0.6), 2),
                height=round(height, 2),
                kind=card.kind,
                title=f"{card.line.clip_id}: {shown}, {card.line.outcome}",
                anchor=anchor(card),
            )
        )
    return Strip(tuple(bars), _rules({"p50": p50, "p90": p90}, scale))


def _rules(percentiles: dict[str, float | None], scale: float) -> tuple[Rule, ...]:
    """A line a percentile, from the bottom up; a label moves up when it would lie on the one before it."""
    rules: list[Rule] = []
    for name, value in percentiles.items():
        if value is None:
            continue
        y = STRIP_HEIGHT - value * scale
        text_y = y + 4 if not rules else min(y + 4, rules[-1].text_y - 14)
        rules.append(Rule(round(y, 2), round(text_y, 2), f"{name} {value:,.0f} ms"))
    return tuple(rules)


def anchor(card: Card) -> str:
    """The id of a card in its page: of what identifies its line, so that the same page links the same way."""
    return f"c-{card.line.request_id or ''}-{card.line.clip_id}".replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Race:
    """Sequential against batch: widths in percent of the slower one."""

    sequential_ms: float
    batch_ms: float
    sequential_percent: float
    batch_percent: float


def race(sequential_ms: float | None, batch_ms: float | None) -> Race | None:
    """Two bars to compare; None when a time is missing."""
    if not sequential_ms or not batch_ms:
        return None
    slower = max(sequential_ms, batch_ms)
    return Race(sequential_ms, batch_ms, 100 * sequential_ms / slower, 100 * batch_ms / slower)
