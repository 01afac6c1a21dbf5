"""The way of a request through its stages, as a waterfall: what the client saw end to end, and what servers told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vision_bench.report.figures import axis, colour, spans
from vision_bench.report.run_words import step_load, step_name, with_interval
from vision_bench.report.section import Cell, Figure, Section, Table
from vision_bench.report.shell import shown

Json = dict[str, Any]

MOST_STEPS = 3
WAITS_FOR = "sent_to_first_event"
"""The client's stage inside which everything happens that only a server can tell."""

BEFORE = ("frame_capture", "video_transport")
"""What happened to a frame before anybody asked about it."""


def stage_section(steps: Sequence[Json], pairs: Json | None = None) -> Section | None:
    """Waterfalls of the lightest, the last stable and the heaviest step, and a table of all.

    Args:
        pairs: the paired differences that were measured before the first step, where they were asked for.
    """
    told = [step for step in steps if any(_mean_ms(row) is not None for row in step["stages"])]
    if not told:
        return None
    rows: list[list[Cell]] = [
        [step_name(step, steps), row["stage"].replace("_", " "), row["source"], _mean_ms(row), *_percentiles(row)]
        for step in told
        for row in step["stages"]
    ]
    return Section(
        "Stages of a request",
        figures=[_waterfall(step, steps) for step in _chosen(told)],
        tables=[Table(["step", "stage", "told by", "mean ms", "p50 ms", "p95 ms"], rows), *_pairs_table(pairs)],
        notes=[
            "Bars are means over good answers, which add up; percentiles do not. The client's own stages follow each "
            "other. What a server told lies inside the wait for the first event, at a place that the client cannot "
            "see: it is drawn from the start of that wait. A stage that nobody told is unknown, not zero."
        ],
        is_folded=True,
    )


def _pairs_table(pairs: Json | None) -> list[Table]:
    if pairs is None:
        return []
    named = (
        ("media less equal text", "media_less_text_ms"),
        ("uncached less cached", "uncached_less_cached_ms"),
    )
    rows: list[list[Cell]] = [
        [name, pairs[key]["count"], with_interval(pairs[key], "p50"), pairs[key]["mean"]]
        for name, key in named
        if pairs.get(key)
    ]
    caption = "What media cost before the first token: paired differences, measured one request at a time"
    return [Table(["difference of times to the first token", "pairs", "p50 ms", "mean ms"], rows, caption)]


def _chosen(steps: Sequence[Json]) -> list[Json]:
    stable = [step for step in steps if step["verdict"] == "STABLE"]
    chosen = {step["step"]: step for step in (steps[0], *stable[-1:], steps[-1])}
    return [chosen[number] for number in sorted(chosen)][:MOST_STEPS]


def _waterfall(step: Json, steps: Sequence[Json]) -> Figure:
    names, starts, lengths = [], [], []
    server_names, server_starts, server_lengths = [], [], []
    now_ms = waited_from_ms = 0.0
    for row in step["stages"]:
        if row["ms"] is None or row["source"] != "client":
            continue
        mean_ms = _mean_ms(row) or 0.0
        if row["stage"] == WAITS_FOR:
            waited_from_ms = now_ms
        names.append(row["stage"].replace("_", " "))
        starts.append(now_ms)
        lengths.append(mean_ms)
        now_ms += mean_ms
    at_ms = waited_from_ms
    for row in step["stages"]:
        told_ms = _mean_ms(row)
        if row["source"] == "client" or told_ms is None or row["stage"] in BEFORE:
            continue
        label = row["stage"].replace("_", " ")
        server_names.append(label)
        # The gateway's upstream time spans what the model's stages divide: it starts where they do.
        server_starts.append(at_ms if row["stage"] != "generation" else max(at_ms, now_ms - told_ms))
        server_lengths.append(told_ms)
        if row["stage"] not in ("gateway_upstream", "generation"):
            at_ms += told_ms
    order = [row["stage"].replace("_", " ") for row in step["stages"]]
    drawn = [name for name in order if name in names or name in server_names]
    traces = [
        _bars("client", names, starts, lengths, 0),
        _bars("told by a server", server_names, server_starts, server_lengths, 1),
    ]
    layout = {
        "title": {"text": f"{step_name(step, steps)} ({step['verdict']})"},
        "xaxis": axis("ms, mean over good answers", from_zero=True),
        "yaxis": {"autorange": "reversed", "categoryorder": "array", "categoryarray": drawn},
        "barmode": "overlay",
        "showlegend": bool(server_names),
    }
    longest = max(zip(lengths, names, strict=True), default=(0.0, "none"))
    says = (
        f"{step_name(step, steps)}, {step_load(step)}: {now_ms:.4g} ms end to end, the longest stage {longest[1]} with "
        f"{longest[0]:.4g} ms."
    )
    return Figure(traces, layout, says, height=120 + 26 * len(drawn))


def _bars(name: str, rows: list[str], starts: list[float], lengths: list[float], number: int) -> Json:
    text = [f"{shown(length)} ms" for length in lengths]
    return spans(name, rows, starts, lengths, colour=colour(number), text=text, textposition="auto", hoverinfo="y+text")


def _mean_ms(row: Json) -> float | None:
    if row["ms"] is not None:
        return row["ms"]["mean"]  # type: ignore[no-any-return]
    return None if row["server"] is None else row["server"].get("mean_ms")


def _percentiles(row: Json) -> list[Cell]:
    if row["ms"] is not None:
        return [with_interval(row["ms"], name) for name in ("p50", "p95")]
    if row["server"] is not None:
        at_most = row["server"].get("p50_at_most_ms")
        return [None if at_most is None else f"at most {at_most:g}", None]
    return [None, None]
