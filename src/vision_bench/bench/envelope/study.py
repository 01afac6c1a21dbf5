"""A study: run the labelled set over every envelope, one run folder each; then table, controls, choice.

Everything right of the run folders can be made again from them (``summarise_study``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.chat.clips import media_files
from vision_bench.bench.chat.workload import ChatWorkload
from vision_bench.bench.choice import choice_path, make_choice, model_facts, prints_of, write_choice
from vision_bench.bench.envelope.choose import choose, flags, size_of
from vision_bench.bench.envelope.controls import judge_control
from vision_bench.bench.envelope.points import Point, make_points
from vision_bench.bench.envelope.rows import outcomes_of, row_of
from vision_bench.bench.envelope.stale import changes, has_several_models, path_from
from vision_bench.bench.plan import LoadPlan
from vision_bench.bench.run import RunOptions, run_to_end
from vision_bench.bench.rundir import MANIFEST, STUDY, check_new, read_manifest, write_json
from vision_bench.bench.session import Status
from vision_bench.bench.workload import read_workload
from vision_bench.errors import InvalidRequest, OperatorError

Json = dict[str, Any]

SCHEMA = 1
RESULT = "envelope.json"
POINTS = "points"
MEDIA = "media"
"""Clips in the forms in which they were sent, made once for all envelopes that share one."""


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """A study as it was asked for.

    Attributes:
        axes: workload keys to the values that are compared.
        threshold: share of facts that must be right.
        is_sure: the lower end of the interval must reach it.
        rounds: how often each item is asked in each envelope.
        controls: ask the largest envelope again without picture, and without sound.
        keep: where the choice is kept; beside the workload when None.
    """

    workload: Path
    target: str
    out: Path
    axes: Mapping[str, Sequence[Any]]
    threshold: float
    is_sure: bool = False
    rounds: int = 1
    concurrency: int = 1
    warm_up: int = 1
    controls: bool = True
    keep: Path | None = None
    api_key: str | None = None
    is_resumed: bool = False


def run_study(
    options: StudyOptions,
    *,
    on_point: Callable[[str, int, int], None] | None = None,
    on_status: Callable[[Status], None] | None = None,
) -> Json:
    """Run what is not done yet and give the study, which lies in the folder too.

    Args:
        on_point: told the name of each envelope before it runs, its number and how many there are.

    Raises:
        InvalidRequest: workload, options or folder are wrong; nothing was sent.
        ConnectFailed, UnknownName: the target cannot be used.
    """
    if not 0 < options.threshold <= 1:
        raise InvalidRequest(f"--threshold is {options.threshold:g}; give a share above 0 and up to 1")
    points = make_points(options.axes)
    workloads = [_checked(options.workload, point) for point in points]
    base = read_workload(options.workload)
    items = len(media_files(base.resolve(workloads[0].clips or ""), workloads[0].media))
    _open_folder(options, items)
    hears = any(workload.use_audio for workload in workloads)
    runner = _Runner(options, items, len(points) + (1 + hears) * options.controls, on_point, on_status)
    for point in points:
        runner.run(point)
    if options.controls:
        for point in _control_points(options.out, points):
            runner.run(point)
    study = summarise_study(options.out, threshold=options.threshold, is_sure=options.is_sure)
    write_json(options.out / RESULT, study)
    kept = options.keep or choice_path(options.workload)
    try:
        write_choice(kept, study["choice"])
    except OperatorError as problem:
        raise OperatorError(
            f"the choice cannot be kept in {kept}; the study is whole in {options.out}: repeat with --resume and --keep"
        ) from problem
    return study


def _checked(workload: Path, point: Point) -> ChatWorkload:
    """A point's workload, checked before anything is sent."""
    checked = read_workload(workload).changed(point.all_changes).checked(ChatWorkload)
    if checked.labels is None:
        raise InvalidRequest(f'{workload} has no labels, so nothing can be right or wrong; add labels = "FILE"')
    if checked.media in ("none", "live"):
        raise InvalidRequest(f"{workload} sends no clips; an envelope is of clips or pictures")
    if checked.cache == "unique":
        raise InvalidRequest(f'{workload}: an envelope needs the clips as they are; set cache = "repeat"')
    return checked


def _open_folder(options: StudyOptions, items: int) -> None:
    asked: Json = {
        "schema": SCHEMA,
        "workload": options.workload.name,
        "axes": {key: list(values) for key, values in options.axes.items() if values},
        "rounds": options.rounds,
        "concurrency": options.concurrency,
        "items": items,
    }
    placed = asked | {"workload_path": path_from(options.out, options.workload)}
    file = options.out / STUDY
    has_begun = (options.out / POINTS).is_dir()
    if not options.is_resumed and (has_begun or not file.is_file()):  # one that could not begin is begun anew
        check_new(options.out)
    elif has_begun and file.is_file() and {**_read(file), "workload_path": None} != {**asked, "workload_path": None}:
        raise InvalidRequest(f"{options.out} holds another study; repeat its options, or give another --out")
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(file, placed)


def _read(path: Path) -> Json:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as problem:
        raise InvalidRequest(f"{path} cannot be read ({problem}); it is no study of envelopes") from problem
    if not isinstance(content, dict):
        raise InvalidRequest(f"{path} is no study of envelopes")
    return content


class _Runner:
    """Runs one point after the other, each into a folder of its own; one that is complete is not run again."""

    def __init__(
        self,
        options: StudyOptions,
        items: int,
        total: int,
        on_point: Callable[[str, int, int], None] | None,
        on_status: Callable[[Status], None] | None,
    ) -> None:
        self._options = options
        self._count = items * options.rounds
        self._total = total
        self._number = 0
        self._on_point = on_point
        self._on_status = on_status

    def run(self, point: Point) -> None:
        options, out = self._options, self._options.out / POINTS / point.slug
        self._number += 1
        if self._on_point is not None:
            self._on_point(point.slug, self._number, self._total)
        plan = LoadPlan(
            rates=(),
            concurrency=(options.concurrency,),
            arrivals=parse_process("constant"),
            max_requests=self._count,
        )
        run_to_end(
            RunOptions(
                options.workload,
                options.target,
                out,
                plan,
                warm_up=options.warm_up,
                api_key=options.api_key,
                is_resumed=(out / MANIFEST).is_file(),
                made_dir=self._options.out / MEDIA,
                changes=point.all_changes,
            ),
            on_status=self._on_status,
        )


def _control_points(out: Path, points: Sequence[Point]) -> list[Point]:
    """The largest envelope again, without its picture, and without its sound where it has one."""
    rows = [(row, point) for point in points if (row := row_of(out / POINTS / point.slug)) is not None]
    if not rows:
        return []
    row, point = max(rows, key=lambda one: (bool(one[0]["envelope"].get("use_audio")), size_of(one[0])))
    names = ["blackout", *(["muted"] if row["envelope"].get("use_audio") else [])]
    return [Point(point.changes, name) for name in names]


def summarise_study(out: Path, *, threshold: float, is_sure: bool = False) -> Json:
    """The study of a folder, made from its run folders alone.

    Raises:
        InvalidRequest: ``out`` is no study, or nothing of it has run.
    """
    asked = _read(out / STUDY)
    points = make_points(asked["axes"])
    rows = [row for point in points if (row := row_of(out / POINTS / point.slug)) is not None]
    if not rows:
        raise InvalidRequest(f"{out} holds no envelope that has run; go on with it by --resume")
    rows.sort(key=lambda row: (row["model"], size_of(row)))
    by_row = [(row["model"], read_manifest(out / POINTS / row["folder"])) for row in rows]
    manifests = dict(by_row)
    first = next(iter(manifests.values()))
    chosen = choose(rows, threshold, is_sure=is_sure)
    made_at = max(manifest["started_at"] for manifest in manifests.values())
    named = {"workload": first["workload"]["name"], "threshold": threshold, "is_sure": is_sure, "made_at": made_at}
    choice = make_choice(
        named,
        [_short(row) for row in chosen],
        prints_of(first["workload"]),
        {model: model_facts(manifest.get("server", {})) for model, manifest in manifests.items()},
    )
    servers = [[of.get("server", {}) for model, of in by_row if model == one] for one in manifests]
    return {
        "schema": SCHEMA,
        **named,
        "stale": _stale(out, asked, points, choice["fingerprints"], any(map(has_several_models, servers))),
        "target": first["workload"]["url"],
        "items": asked["items"],
        "rounds": asked["rounds"],
        "concurrency": asked["concurrency"],
        "axes": asked["axes"],
        "is_complete": len(rows) == len(points) and all(row["is_complete"] for row in rows),
        "rows": rows,
        "controls": _controls(out, points),
        "flags": flags(rows),
        "choice": choice,
        "environment": first["environment"],
    }


def _stale(out: Path, asked: Json, points: Sequence[Point], prints: Json, has_other_model: bool) -> list[str] | None:
    """What has changed since, or under way; None where it cannot be known of the workload, and nothing else has."""
    other = ["served model"] if has_other_model else []
    point = next(point for point in points if row_of(out / POINTS / point.slug) is not None)
    path = asked.get("workload_path")
    changed = None if path is None else changes(out / path, point, prints, made_dir=out / MEDIA)
    return other or None if changed is None else [*changed, *other]


def remake_study(out: Path) -> Json:
    """The study of a folder, made again from its run folders with the threshold that it was made with, and written.

    Raises:
        InvalidRequest: ``out`` is no study that came to its end once.
    """
    earlier = _read(out / RESULT)
    study = summarise_study(out, threshold=earlier["threshold"], is_sure=earlier["is_sure"])
    write_json(out / RESULT, study)
    return study


def _short(row: Mapping[str, Any]) -> Json:
    """A chosen row as the choice keeps it."""
    accuracy = row["accuracy"]
    return {
        **{name: row[name] for name in ("model", "envelope", "words", "prompt_tokens", "request_bytes")},
        "accuracy": {name: accuracy[name] for name in ("share", "interval", "count", "clips")},
        "e2e_p50_ms": row["e2e_ms"]["p50"],
    }


def _controls(out: Path, points: Sequence[Point]) -> list[Json]:
    """Every control that has run, against the point that it is the control of."""
    judged = []
    for point in points:
        for name in ("blackout", "muted"):
            arm = out / POINTS / Point(point.changes, name).slug
            if row_of(arm) is not None:
                verdict = judge_control(name, outcomes_of(out / POINTS / point.slug), outcomes_of(arm))
                judged.append({"folder": point.slug, **verdict})
    return judged
