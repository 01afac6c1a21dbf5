"""A chat run's summary and records as the sections of its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vision_bench.bench.chat import formulas
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.record import OK
from vision_bench.report.correctness import correctness_section
from vision_bench.report.figures import DASHES, MARKS, axis, bars, colour, ecdf, line
from vision_bench.report.run_chat_data import BINS, RunView, coarser
from vision_bench.report.run_live import live_section
from vision_bench.report.run_receipts import receipt_section
from vision_bench.report.run_stages import stage_section
from vision_bench.report.run_words import VERDICT_MARKS, ends_of, load_axis, step_load, step_name, with_interval
from vision_bench.report.section import Card, Cell, Figure, Section, Table

Json = dict[str, Any]
Picture = Callable[[str], str | None]

PERCENTILES = ("p50", "p95", "p99")
MOST_CURVES = 8
"""Steps in a figure of distributions: eight colours can be told apart."""
MOST_PARTS = 1200
"""Parts in the timeline of a whole run."""
TEXT_LENGTH = 280
WIDE = 20.0
"""Times that differ by more than this factor are drawn on a logarithmic axis."""


def load_section(steps: Sequence[Json]) -> Section:
    """Latency and what was achieved, against the load."""
    key, name = load_axis(steps)
    x = [step[key] for step in steps]
    places = sorted(range(len(steps)), key=lambda place: (x[place] or 0, steps[place]["round"]))
    ordered = [steps[place] for place in places]
    at = [x[place] for place in places]
    figures = [
        _latency_figure(ordered, at, name, "scheduled_ttft_ms", "First token, from the due time"),
        _latency_figure(ordered, at, name, "response_ms", "Whole answer, from the due time"),
    ]
    if key == "offered_rate":
        figures.append(_achieved_figure(ordered, at, name))
    head = ["step", "load", "offered/s", "achieved/s", "goodput/s", "due", "ok"]
    head += [f"{label} {each} ms" for label in ("TTFT", "response") for each in PERCENTILES]
    rows: list[list[Cell]] = [
        [
            step_name(step, steps),
            step_load(step),
            step["offered_rate"],
            step["achieved_rate"],
            step["goodput"],
            step["requests"]["due"],
            step["requests"]["ok"],
            *(
                with_interval(step[number], each)
                for number in ("scheduled_ttft_ms", "response_ms")
                for each in PERCENTILES
            ),
        ]
        for step in steps
    ]
    caption = (
        "From the due time, over all that was due; 95 % intervals in brackets. Failed and unsent count as infinite."
    )
    return Section(
        "Latency against load",
        figures=[figure for figure in figures if figure is not None],
        tables=[Table(head, rows, caption, [VERDICT_MARKS[step["verdict"]] for step in steps])],
        notes=[
            "A filled circle is a STABLE step, a cross a SATURATED one, an open diamond CLIENT-LIMITED, an open circle "
            "UNDETERMINED. A percentile that the sample cannot carry has no point; the table says why."
        ],
    )


def _latency_figure(
    steps: Sequence[Json], at: Sequence[float | None], x_name: str, key: str, title: str
) -> Figure | None:
    marks = [MARKS[step["verdict"]] for step in steps]
    traces = []
    for number, percentile in enumerate(PERCENTILES):
        values = [step[key][percentile] for step in steps]
        if all(value is None for value in values):
            continue
        ends = [ends_of(step[key], percentile) for step in steps]
        hover = [
            f"{step_name(step, steps)}: {percentile} {with_interval(step[key], percentile)} ms of "
            f"{step[key]['count']}; {step['verdict']}; {step_load(step)}"
            for step in steps
        ]
        traces.append(
            line(
                percentile,
                at,
                values,
                colour=colour(number),
                dash=DASHES[number],
                low=[low for low, _ in ends],
                high=[high for _, high in ends],
                marks=marks,
                hover=hover,
            )
        )
    if not traces:
        return None
    drawn = [step[key][percentile] for step in steps for percentile in PERCENTILES if step[key][percentile]]
    is_wide = bool(drawn) and max(drawn) > WIDE * min(drawn)
    layout = {
        "title": {"text": title},
        "xaxis": axis(x_name, from_zero=True),
        "yaxis": axis("ms", is_log=is_wide, from_zero=not is_wide),
    }
    names = ", ".join(trace["name"] for trace in traces)
    return Figure(traces, layout, f"{title}: {names} with 95 % intervals; {_span(steps, key)}.")


def _span(steps: Sequence[Json], key: str) -> str:
    medians = [step[key]["p50"] for step in steps if step[key]["p50"] is not None]
    if not medians:
        return "no step has a median"
    return f"median {medians[0]:.4g} ms at the lowest load and {medians[-1]:.4g} ms at the highest that has one"


def _achieved_figure(steps: Sequence[Json], at: Sequence[float | None], x_name: str) -> Figure:
    marks = [MARKS[step["verdict"]] for step in steps]
    traces = [
        line("offered", at, at, colour="var(--soft)", dash="dot"),
        line("achieved", at, [step["achieved_rate"] for step in steps], colour=colour(0), marks=marks),
        line("goodput", at, [step["goodput"] for step in steps], colour=colour(2), dash="dash", marks=marks),
    ]
    layout = {"title": {"text": "Throughput"}, "xaxis": axis(x_name), "yaxis": axis("requests/s", from_zero=True)}
    return Figure(traces, layout, "Good answers a second against what was offered; goodput keeps the limits too.", 300)


def distribution_section(steps: Sequence[Json], view: RunView) -> Section | None:
    """Whole distributions, a curve a step."""
    shown = _chosen(steps)
    figures = []
    for key, title, who in (
        ("scheduled_ttft_ms", "First token, from the due time", "of all that was due"),
        ("ttft_ms", "First token, from the first byte sent", "of good answers"),
        ("icl_ms", "Gaps between content events", "of all gaps of good answers"),
        ("response_ms", "Whole answer, from the due time", "of all that was due"),
    ):
        traces = []
        for number, step in enumerate(shown):
            points = view.steps[step["step"]].distributions[key].ecdf()
            if points:
                name = f"{step_name(step, steps)}, {step['arrivals'] or 'closed loop'}"
                traces.append(ecdf(name, points, colour=colour(number), dash=DASHES[number // 4 % len(DASHES)]))
        if traces:
            layout = {
                "title": {"text": title},
                "xaxis": axis("ms", is_log=True),
                "yaxis": axis(f"share {who}", tickformat=".0%", range=[0, 1.02]),
            }
            figures.append(Figure(traces, layout, f"{title}: share {who} at most so long, one curve a step."))
    if not figures:
        return None
    notes = ["Each curve is drawn from all values, known to 1 % each, at 300 points at most."]
    notes += ["A curve that ends below 100 % has failures, which never came."]
    if len(shown) < len(steps):
        notes.append(f"{len(shown)} of {len(steps)} steps are drawn, evenly chosen.")
    return Section("Distributions", figures=figures, notes=notes)


def _chosen(steps: Sequence[Json]) -> list[Json]:
    if len(steps) <= MOST_CURVES:
        return list(steps)
    return [steps[round(number * (len(steps) - 1) / (MOST_CURVES - 1))] for number in range(MOST_CURVES)]


def timeline_section(steps: Sequence[Json], view: RunView) -> Section:
    """In flight, and what ended how, over the run; steps stand one behind the other."""
    most = max(20, MOST_PARTS // max(1, len(steps)))
    at_seconds = 0.0
    times: list[float] = []
    in_flight: list[float | None] = []
    endings: dict[str, list[float]] = {}
    shapes, notes = [], []
    for step in steps:
        timeline = view.steps[step["step"]].timeline
        width = timeline.bin_ns / 1e9 * -(-timeline.bins // most)
        levels = timeline.in_flight()
        group = -(-len(levels) // most)
        kept = levels[group - 1 :: group] + ([levels[-1]] if len(levels) % group else [])
        parts = {
            name: coarser([counts[number] for number in range(timeline.bins)], most)
            for name, counts in timeline.outcomes.items()
        }
        before = len(times)
        times += [at_seconds + (number + 1) * width for number in range(len(kept))]
        in_flight += kept
        for name, counts in parts.items():
            row = endings.setdefault(name, [])
            row += [0.0] * (before - len(row)) + [count / width for count in counts]
        shapes.append(_boundary(at_seconds))
        notes.append((at_seconds, step_name(step, steps)))
        at_seconds += len(kept) * width
    traces = [line("in flight", times, in_flight, colour=colour(0), shape="hv")]
    for number, (name, counts) in enumerate(sorted(endings.items(), key=lambda entry: entry[0] != OK)):
        tint = (
            colour(2) if name == OK else ("var(--fail)", colour(1), colour(3), colour(4), colour(6))[(number - 1) % 5]
        )
        counts += [0.0] * (len(times) - len(counts))
        traces.append(bars(f"{name}/s", times, counts, colour=tint, yaxis="y2", marker={"color": tint}))
    layout = {
        "xaxis": axis("seconds of load, steps laid end to end", anchor="y2"),
        "yaxis": axis("in flight", from_zero=True, domain=[0.42, 1]),
        "yaxis2": axis("ended/s", from_zero=True, domain=[0, 0.34]),
        "barmode": "stack",
        "bargap": 0,
        "shapes": shapes,
        "annotations": _step_labels(notes),
    }
    failures = sum(step["requests"]["failed"] for step in steps)
    says = f"Requests due and not over, and how requests ended, over the run; {failures} failed in all."
    rows: list[list[Cell]] = [
        [step_name(step, steps), failure["outcome"], failure["detail"] or "no reason told", failure["count"]]
        for step in steps
        for failure in step["failures"]
    ]
    tables = [Table(["step", "outcome", "reason", "count"], rows, "Failures by reason, the five commonest of a step")]
    return Section(
        "Timeline",
        figures=[Figure(traces, layout, says, 440)],
        tables=tables if rows else [],
        notes=[f"Each step is cut into {BINS} parts of its window or fewer; answers after it are in parts behind it."],
    )


def _boundary(x: float) -> Json:
    pen = {"color": "var(--line)", "width": 1}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": pen}


def _step_labels(places: Sequence[tuple[float, str]]) -> list[Json]:
    """Names of at most twelve steps, so that they do not lie on each other."""
    every = -(-len(places) // 12)
    return [
        {"x": x, "y": 1, "xref": "x", "yref": "paper", "text": name, "showarrow": False, "xanchor": "left",
         "yanchor": "bottom", "font": {"size": 10, "color": "var(--soft)"}}
        for x, name in places[::every]
    ]  # fmt: skip


def worst_section(steps: Sequence[Json], view: RunView, picture: Picture) -> Section | None:
    """The slowest answers and the failures, with what was sent."""
    names = {step["step"]: step_name(step, steps) for step in steps}
    starts = {step: each.timeline.start_ns for step, each in view.steps.items()}

    def card(record: ChatRecord) -> Card:
        response_ms = formulas.response_ms(record)
        lead = record.text if record.outcome == OK else record.detail
        facts: list[tuple[str, Cell]] = [
            ("step", names[record.step]),
            ("due at, s", (record.due_ns - starts[record.step]) / 1e9),
            ("first token, ms", formulas.scheduled_ttft_ms(record)),
            ("answer, ms", response_ms if record.outcome == OK else None),
            ("longest gap, ms", formulas.max_gap_ms(record)),
            ("left late by, ms", formulas.lag_ms(record)),
            ("tokens", record.completion_tokens),
            ("status", record.status),
            ("request", record.request_id),
        ]
        return Card(
            name=f"{record.item or 'request'} #{record.index}",
            badge=record.outcome if record.outcome != OK else f"{response_ms or 0:,.0f} ms",  # type: ignore[arg-type]
            lead=_short(lead) or ("no text kept" if record.outcome == OK else "no reason told"),
            facts=[(name, value) for name, value in facts if value is not None],
            kind="ok" if record.outcome == OK else "fail",
            picture=picture(record.item) if record.item else None,
        )

    slowest, failed = view.worst.slowest(), view.worst.failed()
    if not slowest and not failed:
        return None
    return Section(
        "The worst requests",
        text=f"{len(failed)} failures, one of each reason first, and the {len(slowest)} slowest answers of the run.",
        cards=[card(record) for record in (*failed, *slowest)],
    )


def _short(text: str | None) -> str:
    text = (text or "").strip()
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 1] + "…"


def client_section(steps: Sequence[Json]) -> Section:
    """What the measuring program cost itself, and whether its counts agree."""
    head = ["step", "left late p99, ms", "loop late p99, ms", "share of a core", "CPU ms/request"]
    head += ["connections", "Little's law off by", "repeated bodies", "cached tokens told"]
    rows: list[list[Cell]] = [
        [
            step_name(step, steps),
            with_interval(step["lag_ms"], "p99"),
            step["client"]["loop_lag_p99_ms"],
            step["client"]["cpu_share"],
            step["client"]["cpu_ms_per_request"],
            step["client"]["connections_opened"],
            step["in_flight"]["little_error"],
            step["repeats"],
            step["cache"]["cached_tokens"],
        ]
        for step in steps
    ]
    return Section("What the client cost", tables=[Table(head, rows)])


def chat_sections(summary: Mapping[str, Any], view: RunView, picture: Picture) -> list[Section]:
    """Everything but what every kind has."""
    steps = summary["steps"]
    sections = [
        load_section(steps),
        correctness_section(dict(summary)),
        live_section(steps),
        distribution_section(steps, view),
        receipt_section(steps),
        stage_section(steps, summary.get("preprocess_pairs")),
        timeline_section(steps, view),
        worst_section(steps, view, picture),
        client_section(steps),
    ]
    return [section for section in sections if section is not None]
