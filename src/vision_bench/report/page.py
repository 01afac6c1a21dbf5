"""A run as one HTML page that opens offline: styles, script and pictures are all inside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2

from vision_bench.client.results import Results, read_results
from vision_bench.errors import InvalidRequest
from vision_bench.report.charts import anchor, latency_strip, race
from vision_bench.report.clips import make_cards, total
from vision_bench.report.shell import environment
from vision_bench.wire.shapes import parse_json

RESULTS_NAME = "results.ndjson"
API_CHECK_NAME = "api_check.json"
BATCH_NAME = "batch_throughput.json"


@dataclass(frozen=True, slots=True)
class Run:
    """What a report is made of. ``api_check`` and ``batch`` are the experiments' own JSON, None when not there."""

    name: str
    folder: Path
    results: Results
    api_check: dict[str, Any] | None = None
    batch: dict[str, Any] | None = None
    extras: dict[str, Any] = field(default_factory=dict)


def load_run(source: Path, *, extras: dict[str, Path] | None = None) -> Run:
    """A results file, or a run folder with ``results.ndjson`` and perhaps the experiments' files beside it.

    Raises:
        InvalidRequest: no results there, or an extra that is not JSON.
    """
    folder = source if source.is_dir() else source.parent
    file = source / RESULTS_NAME if source.is_dir() else source
    if not file.is_file():
        raise InvalidRequest(f"no results file {file}; `vision-bench analyze` writes one")
    results = read_results(file)
    if not results.lines:
        raise InvalidRequest(f"{file} holds no line of an analysis ({results.unreadable} lines cannot be read)")
    return Run(
        name=folder.name or str(folder.resolve().name),
        folder=folder,
        results=results,
        api_check=_read_object(folder / API_CHECK_NAME) if source.is_dir() else None,
        batch=_read_object(folder / BATCH_NAME) if source.is_dir() else None,
        extras={name: _read_json(path) for name, path in (extras or {}).items()},
    )


def render(
    run: Run,
    *,
    made_at: datetime,
    title: str | None = None,
    credits: Sequence[str] = (),
    clips_dir: Path | None = None,
    with_media: bool = True,
    on_card: Callable[[], None] = lambda: None,
) -> str:
    """The page as text.

    Args:
        made_at: when, as the page says.
        credits: lines that name the makers of what is shown.
        with_media: False leaves pictures out.

    Raises:
        InvalidRequest: an experiment's file has another shape than the experiment writes.
    """
    cards = make_cards(run.results, clips_dir=clips_dir, beside=run.folder, with_pictures=with_media, on_card=on_card)
    totals = total(cards)
    batch = run.batch or {}
    template = _environment().get_template("report.html.j2")
    try:
        return template.render(
            title=title or f"{run.name}: clip analysis",
            made_at=made_at,
            run=run,
            cards=cards,
            totals=totals,
            strip=latency_strip(cards, p50=totals.latency_ms.p50, p90=totals.latency_ms.p90),
            race=race(batch.get("sequential_ms"), batch.get("batch_ms")),
            batch=run.batch,
            api_rows=(run.api_check or {}).get("rows") or [],
            credits=list(credits),
            with_media=with_media,
            pictures=sum(card.picture is not None for card in cards),
        )
    except (jinja2.UndefinedError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        if run.batch is None and run.api_check is None:  # result lines and extras are of any shape that draws
            raise
        raise InvalidRequest(
            f"{API_CHECK_NAME} or {BATCH_NAME} in {run.folder} is not what the experiments write ({problem}); "
            "run the experiment again, or name the results file alone"
        ) from problem


def _environment() -> jinja2.Environment:
    made = environment()
    made.filters |= {"ms": _ms, "number": _number, "pretty": _pretty, "anchor": anchor}
    return made


def _ms(value: float | None) -> str:
    """A time as people read it; none is n/a, never 0."""
    if value is None:
        return "n/a"
    return f"{value / 1000:.1f} s" if value >= 10_000 else f"{value:,.0f} ms"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:,.0f}"


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _read_json(path: Path) -> Any:
    try:
        return parse_json(path.read_text("utf-8"))
    except (OSError, ValueError) as problem:
        raise InvalidRequest(f"{path} cannot be read as JSON: {problem}") from problem


def _read_object(path: Path) -> dict[str, Any] | None:
    """An experiment's file; None when it is not there."""
    if not path.is_file():
        return None
    value = _read_json(path)
    if not isinstance(value, dict):
        raise InvalidRequest(f"{path} holds {type(value).__name__}, not an object; run the experiment again")
    return value
