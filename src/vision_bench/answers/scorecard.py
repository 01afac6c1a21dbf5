"""A whole analysis against a broadcast's labels: every score, gathered by fact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from vision_bench.answers.measured import read_measured
from vision_bench.answers.scoring import Method, by_fact, mean, score_answer, score_measured


@dataclass(frozen=True, slots=True)
class Row:
    """The mean of one fact's scores; ``count`` is how many windows were asked for it."""

    fact: str
    method: Method
    mean: float | None
    count: int


@dataclass(frozen=True, slots=True)
class Scorecard:
    """``windows`` of the labels, of which ``answered`` have a good answer; the others count as wrong in every row."""

    windows: int
    answered: int
    rows: tuple[Row, ...]

    def as_json(self) -> dict[str, Any]:
        """For a JSON object; holds counts and means, no word of any answer."""
        rows = [{"fact": it.fact, "method": it.method, "mean": it.mean, "count": it.count} for it in self.rows]
        return {"windows": self.windows, "answered": self.answered, "rows": rows}


def score_results(
    labels: Mapping[str, Any], lines: Iterable[Mapping[str, Any]], *, fps: float | None = None
) -> Scorecard:
    """Score the lines of a ``results.ndjson``; of several lines for one clip the last good one counts.

    What a line measured is scored where it gives measurements, as the baseline does; what it says is scored for any
    model that gives none.

    Args:
        labels: the label file of the broadcast that the clips were cut from.
        fps: frames a second that the model was given, for lines that do not say.
    """
    good = {PurePath(line["clip"]).stem: line for line in lines if isinstance(line.get("result"), Mapping)}
    answers = {clip: _texts(line["result"]) for clip, line in good.items()}
    measured = {clip: read_measured(answer) for clip, answer in answers.items()}
    measures = any(measured.values())
    scores = []
    for window in labels["windows"]:
        clip = window["clip"]
        if measures:
            asked_fps = good.get(clip, {}).get("fps") or fps
            scores += score_measured(measured.get(clip, {}), window, fps=asked_fps)
        else:
            scores += score_answer(answers.get(clip, {}), window)
    rows = tuple(
        Row(fact, method, mean(values), len(values)) for (fact, method), values in sorted(by_fact(scores).items())
    )
    clips = {window["clip"] for window in labels["windows"]}
    return Scorecard(len(clips), len(clips & set(answers)), rows)


def _texts(result: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in result.items() if isinstance(value, str)}
