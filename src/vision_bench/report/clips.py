"""A results file as cards: one a clip, failures first, each with its picture."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vision_bench import stats
from vision_bench.answers.analysis import MAX_LENGTHS
from vision_bench.client.results import ResultLine, Results
from vision_bench.errors import VisionBenchError
from vision_bench.media.encode import data_uri, thumbnail

THUMBNAIL_WIDTH = 320  # pixels: sharp at the card's width, 5 to 15 kB each

LABELS = {"summary": "Summary", "scene": "Scene", "speech": "Speech", "on_screen_text": "On screen", "text": "Answer"}


@dataclass(frozen=True, slots=True)
class Card:
    """One clip as the page shows it. ``fields`` are (label, text), the most telling first; ``picture`` a data: URI."""

    line: ResultLine
    fields: tuple[tuple[str, str], ...]
    picture: str | None
    tokens: int | None

    @property
    def kind(self) -> str:
        """``fail``, ``warn`` or ``ok``: what the card is coloured and sorted by."""
        if not self.line.is_ok:
            return "fail"
        return "warn" if self.line.warnings else "ok"


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over all cards. Latency is of good answers."""

    clips: int
    ok: int
    failed: int
    warned: int
    outcomes: dict[str, int]
    warnings: dict[str, int]
    models: tuple[str, ...]
    rates: tuple[str, ...]
    latency_ms: stats.Summary
    prompt_tokens: int | None
    completion_tokens: int | None


def make_cards(
    results: Results,
    *,
    clips_dir: Path | None = None,
    beside: Path | None = None,
    with_pictures: bool = True,
    on_card: Callable[[], None] = lambda: None,
) -> list[Card]:
    """A card a line: failures, then clips with warnings, then the rest, each by path.

    Args:
        clips_dir: where clips lie when they are no longer where the results say.
        beside: the results' folder, where relative paths are also looked for.
        with_pictures: False leaves media out of the page.
    """
    cards = []
    for line in sorted(results.lines, key=lambda line: (line.clip, line.fingerprint)):
        picture = _picture(line, clips_dir, beside) if with_pictures else None
        cards.append(Card(line, _fields(line), picture, _tokens(line, "completion_tokens")))
        on_card()
    return sorted(cards, key=lambda card: ("fail", "warn", "ok").index(card.kind))


def total(cards: Sequence[Card]) -> Totals:
    """What the page's head says."""
    lines = [card.line for card in cards]
    good = [line for line in lines if line.is_ok]
    return Totals(
        clips=len(lines),
        ok=len(good),
        failed=len(lines) - len(good),
        warned=sum(card.kind == "warn" for card in cards),
        outcomes=dict(Counter(line.outcome for line in lines).most_common()),
        warnings=dict(Counter(warning.partition(":")[0] for line in lines for warning in line.warnings).most_common()),
        models=tuple(sorted({line.model for line in lines if line.model})),
        rates=tuple(sorted({"n/a" if line.fps is None else f"{line.fps:g}" for line in lines})),
        latency_ms=stats.summarise([line.elapsed_ms for line in good if line.elapsed_ms is not None]),
        prompt_tokens=_sum_tokens(good, "prompt_tokens"),
        completion_tokens=_sum_tokens(good, "completion_tokens"),
    )


def _fields(line: ResultLine) -> tuple[tuple[str, str], ...]:
    """The answer's fields as text; the summary leads where there is one."""
    result = line.result or {}
    known = [name for name in LABELS if name in result and (name in MAX_LENGTHS or name == "text")]
    names = known + [name for name in result if name not in known]
    return tuple((LABELS.get(name, name), _text(result[name])) for name in names)


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(item)}" for name, item in value.items())
    return "—" if value is None or value == "" else str(value)


def _picture(line: ResultLine, clips_dir: Path | None, beside: Path | None) -> str | None:
    clip = find_clip(line.clip, clips_dir, beside)
    if clip is None:
        return None
    try:
        return data_uri(thumbnail(clip, width=THUMBNAIL_WIDTH), "image/jpeg")
    except (VisionBenchError, OSError):
        return None  # a clip that cannot be decoded is a card without a picture; its line says why


def find_clip(clip: str, clips_dir: Path | None, beside: Path | None) -> Path | None:
    """Where a clip is now: in ``clips_dir`` by as much of its path as fits, else as the results say or beside them."""
    path = Path(clip)
    candidates = [path]
    if clips_dir is not None:
        parts = path.parts
        candidates = [clips_dir.joinpath(*parts[start:]) for start in range(int(path.is_absolute()), len(parts))]
    elif beside is not None and not path.is_absolute():
        candidates.append(beside / path)
    # os.path, unlike Path before 3.14, takes a name too long or a folder without permission for no file.
    return next((candidate for candidate in candidates if os.path.isfile(candidate)), None)  # noqa: PTH113


def _tokens(line: ResultLine, name: str) -> int | None:
    count = (line.usage or {}).get(name)
    return count if isinstance(count, int) else None


def _sum_tokens(lines: Sequence[ResultLine], name: str) -> int | None:
    counts = [count for count in (_tokens(line, name) for line in lines) if count is not None]
    return sum(counts) if counts else None
