"""What a run's page says of generated video: each step's sessions against their players, and every number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vision_bench.bench.realtime.kind import read_sessions
from vision_bench.bench.realtime.record import observation
from vision_bench.bench.realtime.summary import Basis
from vision_bench.bench.record import OK, UNSENT
from vision_bench.bench.rundir import read_manifest
from vision_bench.report.realtime_figures import Shown, histogram, interactions, intervals, lanes, timeline
from vision_bench.report.section import Cell, Figure, Section, Table, Tile

Json = dict[str, Any]

MOST_TIMELINES = 6
MOST_SESSIONS = 60
"""What is drawn of a step; the numbers are of all."""


def realtime_sections(folder: Path, summary: Json) -> list[Section]:
    """Everything that the page of a run says of generated video, step by step."""
    facts = read_manifest(folder)["workload"]
    basis = Basis(**facts["basis"])
    sections: list[Section] = []
    for step in summary["steps"]:
        sections += _step(step, _sessions(folder, step["step"]), basis, is_only=len(summary["steps"]) == 1)
    return sections


def _sessions(folder: Path, step: int) -> list[Shown]:
    records = [record for record in read_sessions(folder) if record.step == step and record.outcome != UNSENT]
    records.sort(key=lambda record: (record.start_sent_ns or record.due_ns, record.ordinal))
    return [Shown(f"session {record.index}", observation(record)) for record in records[:MOST_SESSIONS]]


def realtime_facts(folder: Path) -> list[str]:
    """What its numbers must be read with."""
    workload = read_manifest(folder)["workload"]
    values, basis = workload["values"], Basis(**workload["basis"])
    buffer = "1 chunk" if basis.buffer_chunks == 1 else f"{basis.buffer_chunks} chunks"
    return [
        f"{values['num_frames']} pictures a session, written for {values['fps']:g} fps",
        f"watched at {basis.fps:g} fps, {buffer} buffered",
        *(f"note: {warning}" for warning in workload["warnings"]),
    ]


def realtime_tiles(summary: Json) -> list[Tile]:
    """The last step in six numbers."""
    if not summary["steps"]:
        return []
    step = summary["steps"][-1]
    requests, chunks, pictures = step["requests"], step["chunks"], step["pictures"]
    deadlines = chunks["deadlines"]
    count = deadlines["met"] + deadlines["missed"]
    attained = "n/a" if deadlines["attainment"] is None else f"{deadlines['attainment']:.1%}"
    return [
        Tile(f"{requests['ok']} of {requests['due']}", "sessions to their end", _good(not requests["failed"])),
        _first_chunk(step["startup"]["ttfc_ms"]),
        Tile(_ms(chunks["interval_steady_ms"]), f"mean steady interval ({count})"),
        Tile(attained, f"of {count} steady chunks in time"),
        Tile(chunks["video_rtf"]["mean"], f"real-time factor ({chunks['video_rtf']['count']}), under 1 keeps up"),
        Tile(pictures["stalls"], f"stalls in {pictures['sessions_played']} sessions", _good(not pictures["stalls"])),
    ]


def _good(is_good: bool) -> str:
    return "good" if is_good else "bad"


def _first_chunk(found: Json) -> Tile:
    """The mean; the median where a session never had one, which no mean can hold."""
    if found["mean"] is None and found["p50"] is not None:
        return Tile(f"{found['p50']:,.0f} ms", f"median time to first chunk ({found['count']}, some had none)")
    return Tile(_ms(found), f"time to first chunk ({found['count']})")


def _ms(found: Json) -> Cell:
    return "n/a" if found["mean"] is None else f"{found['mean']:,.0f} ms"


def _step(step: Json, shown: Sequence[Shown], basis: Basis, *, is_only: bool) -> Iterator[Section]:
    name = "" if is_only else f"{step['name']}: "
    said = f"{step['name']}, {step['arrivals'] or 'closed loop'}, {step['duration_seconds']:.1f} s. "
    timelines = [figure for one in shown[:MOST_TIMELINES] if (figure := timeline(one, basis)) is not None]
    left_out = len([one for one in shown if one.session.arrivals]) - len(timelines)
    yield Section(
        f"{name}Chunks against the player",
        f"{said}{step['verdict']}: {step['verdict_reason']}.",
        figures=timelines,
        notes=[f"{left_out} more sessions are in the table alone."] if left_out > 0 else [],
    )
    steady = [
        record.inter_arrival_s * 1000
        for one in shown
        for record in one.session.records[:-1]
        if record.index >= basis.warmup_chunks and record.index > 0
    ]
    yield Section(f"{name}Intervals", figures=_there(intervals(shown, basis), histogram(steady, basis)))
    if events := interactions(shown):
        yield Section(f"{name}What became of events", figures=[events], tables=[_events(step)])
    yield Section(f"{name}Sessions", figures=_there(lanes(shown)), tables=_session_tables(step))
    yield Section(f"{name}Numbers", tables=[_numbers(step), *_stream(step)], is_folded=False)
    if step["client_error"]:
        yield _client_error(name, step["client_error"])


def _there(*figures: Figure | None) -> list[Figure]:
    return [figure for figure in figures if figure is not None]


def _session_tables(step: Json) -> list[Table]:
    rows, marks = [], []
    for one in step["each"][:MOST_SESSIONS]:
        odd = ", ".join(f"{name} {count}" for name, count in one["oddities"].items() if name != "no_close_frame")
        rows.append(
            [
                one["index"],
                one["outcome"],
                one["chunks"],
                one["frames"],
                one["ttfc_ms"],
                one["playback_start_ms"],
                one["interval_mean_ms"],
                one["interval_max_ms"],
                one["wall_ms"],
                one["detail"] or odd or "",
            ]
        )
        marks.append("ok" if one["outcome"] == OK else "fail")
    head = ("session", "outcome", "chunks", "pictures", "first chunk ms", "playback ms", "mean gap ms", "longest ms")
    tables = [Table((*head, "wall ms", "said"), rows, marks=marks)]
    if step["recovery"]:
        tables.append(
            Table(
                ("dropped session", "next one", "its first chunk ms", "more than undisturbed ms", "drop to chunk ms"),
                [
                    [
                        one["dropped"],
                        one["next"],
                        one["next_ttfc_ms"],
                        one["ghost_penalty_ms"],
                        one["drop_to_first_chunk_ms"],
                    ]
                    for one in step["recovery"]
                ],
                caption="After a dropped connection",
            )
        )
    return tables


def _events(step: Json) -> Table:
    found = step["interactions"]
    rate = found["acked_never_started_rate"]
    counts = (
        ("sent", found["sent"]),
        ("acknowledged", found["acked"]),
        ("refused", found["refused"]),
        ("unanswered", found["unanswered"]),
        ("started", found["started"]),
        ("completed", found["completed"]),
        ("acknowledged, never started", found["acked_never_started"]),
        ("of these sent too late to start", found["acked_too_late"]),
        ("never started / acknowledged", None if rate is None else f"{rate:.1%}"),
    )
    return Table(("events", "count"), [list(row) for row in counts])


COLUMNS = (
    ("connect ms", "startup", "connect_ms"),
    ("video.start ms", "startup", "video_start_ms"),
    ("first byte ms", "startup", "first_byte_ms"),
    ("first chunk ms", "startup", "ttfc_ms"),
    ("first picture ms", "startup", "first_decodable_frame_ms"),
    ("playback starts ms", "startup", "playback_start_ms"),
    ("interval, all ms", "chunks", "interval_all_ms"),
    ("interval, steady ms", "chunks", "interval_steady_ms"),
    ("real-time factor", "chunks", "video_rtf"),
    ("late pictures, share", "pictures", "late_ratio"),
    ("worst lateness ms", "pictures", "worst_lateness_ms"),
    ("stalled, share", "pictures", "stall_ratio"),
    ("frozen, share", "pictures", "freeze_ratio"),
    ("acknowledgement ms", "interactions", "ack_ms"),
    ("event to picture ms", "interactions", "first_affected_ms"),
    ("event to picture, chunks", "interactions", "first_affected_chunks"),
    ("event to completion ms", "interactions", "completed_ms"),
    ("drift ms/chunk", "drift", "ms_per_chunk"),
)


def _numbers(step: Json) -> Table:
    rows = [_row(name, step[group][key]) for name, group, key in COLUMNS if step[group][key]["count"]]
    rows += [
        _row(name, step[key])
        for name, key in (("queue wait ms", "queue_wait_ms"), ("stop to done ms", "stop_to_done_ms"))
        if step[key]["count"]
    ]
    return Table(
        ("", "count", "mean", "p50", "p90", "p99", "max"),
        rows,
        caption="Percentiles that too few samples carry are n/a; summary.json says why. Definitions: docs/metrics.md.",
    )


def _row(name: str, found: Json) -> list[Cell]:
    return [name, found["count"], *(found[key] for key in ("mean", "p50", "p90", "p99", "max"))]


def _stream(step: Json) -> list[Table]:
    found = step["integrity"]
    rows: list[list[Cell]] = [
        ["streams, whole", f"{found['streams']}, {found['whole']}"],
        ["decoded", found["decoded"]],
        ["pictures missing", found["frames_missing"]],
        ["frames of another length than announced", found["chunks_of_other_length"]],
        ["transport numbers left out", found["transport_gaps"]],
        ["places in the rollout left out", found["generation_gaps"]],
        ["times that do not ascend", found["pts_not_ascending"]],
        ["pictures of another size", found["frames_of_other_size"]],
        ["repeated pictures", found["repeated_frames"]],
    ]
    if pixels := step["pixels"]:
        rows += [
            ["pictures whose marks were read", f"{pixels['read']} of {pixels['pictures']}"],
            ["marks with another number or chunk", pixels["other_number"] + pixels["other_chunk"]],
            [
                "events seen with their chunk",
                f"{pixels['events_seen_there']} of {pixels['events_started']}",
            ],
        ]
    odd = [[f"odd: {name}", count] for name, count in step["oddities"].items()]
    return [Table(("stream", ""), [*rows, *odd])]


def _client_error(name: str, found: Json) -> Section:
    medians = found["median_absolute_ms"]
    said = ", ".join(f"{key.removesuffix('_ms')} {value:.2f} ms" for key, value in medians.items())
    is_met = "below" if found["is_within_target"] else "not below"
    rows = [
        _row(key.removesuffix("_ms").replace("_", " "), found[key])
        for key in ("ttfc_ms", "interval_ms", "first_affected_ms", "queue_wait_ms", "server_lateness_ms")
        if found[key]["count"]
    ]
    if found["on_the_way_ms"] and found["on_the_way_ms"]["count"]:
        rows.append(_row("on the way", found["on_the_way_ms"]))
    stalls = found["stalls"]
    if stalls["sessions"]:
        rows.append(_row("stalled time", stalls["total_stall_ms"]))
    return Section(
        f"{name}The client's own error",
        f"Measured less declared by the server. Medians of the absolute error: {said}; the largest is {is_met} "
        f"{found['target_ms']:g} ms. The same player over both clocks stalled as often in {stalls['same_count']} of "
        f"{stalls['sessions']} sessions.",
        tables=[Table(("ms", "count", "mean", "p50", "p90", "p99", "max"), rows)],
    )
