"""Sessions of generated video as figures: chunks against the player, intervals, what became of events, who waited."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vision_bench.bench.realtime.interactions import interaction_times
from vision_bench.bench.realtime.playback import FramePlayback, Stall, play_frames
from vision_bench.bench.realtime.records import NS_PER_MS, NS_PER_SECOND, SessionObservation, media_chunks
from vision_bench.bench.realtime.sessions import playback_start_ns
from vision_bench.bench.realtime.summary import Basis
from vision_bench.report.figures import axis, colour, line, spans
from vision_bench.report.section import Figure

Json = dict[str, Any]
BINS = 40


@dataclass(frozen=True, slots=True)
class Shown:
    """One session as the page draws it."""

    name: str
    session: SessionObservation

    @property
    def zero_ns(self) -> int:
        """``session.start`` was written."""
        return self.session.times.start_sent_ns

    def seconds(self, at_ns: int | None) -> float | None:
        """Since the start."""
        return None if at_ns is None else (at_ns - self.zero_ns) / NS_PER_SECOND

    def playback(self, basis: Basis) -> FramePlayback | None:
        """The waiting player; None when it never started."""
        pictures = self.session.decodable_ns
        start_ns = playback_start_ns(self.session.arrivals, pictures, buffer_chunks=basis.buffer_chunks)
        return None if start_ns is None else play_frames(pictures, fps=basis.fps, start_ns=start_ns)


def timeline(shown: Shown, basis: Basis) -> Figure | None:
    """Video that is there over time against video that is watched; where the player stood still is shaded."""
    playback = shown.playback(basis)
    chunks = media_chunks(shown.session.arrivals)
    if playback is None or not chunks:
        return None
    there, total = [], 0
    for chunk in chunks:
        total += chunk.announced_frames
        there.append(total / basis.fps)
    arrived = [shown.seconds(chunk.arrival_ns) for chunk in chunks]
    start_s = shown.seconds(playback.shown_ns[0]) or 0.0
    spans_s = [_stall_span(shown, playback, stall, basis) for stall in playback.stalls]
    stalls = [(begin, end) for begin, end in spans_s if end > begin]
    watched = [shown.seconds(at_ns) for at_ns in playback.shown_ns]
    media = [place / basis.fps for place in range(playback.frames)]
    late = [at > start_s + (before / basis.fps) for at, before in zip(_known(arrived), _before(chunks), strict=True)]
    figure = [
        line("there", arrived, there, colour=colour(0), shape="hv", hovertemplate="%{x:.2f} s: %{y:.2f} s of video"),
        line("watched", watched, media, colour=colour(1), hovertemplate="%{x:.2f} s: picture at %{y:.2f} s"),
        line(
            "schedule from the start",
            [start_s, start_s + there[-1]],
            [0.0, there[-1]],
            colour=colour(7),
            dash="dot",
            hoverinfo="skip",
        ),
        {
            "type": "scatter",
            "mode": "markers",
            "name": "chunk after its schedule",
            "x": [at for at, is_late in zip(arrived, late, strict=True) if is_late],
            "y": [at for at, is_late in zip(there, late, strict=True) if is_late],
            "marker": {"color": "var(--fail)", "symbol": "x", "size": 8},
            "hovertemplate": "%{x:.2f} s: too late for the schedule<extra></extra>",
        },
    ]
    shapes = [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": begin,
            "x1": end,
            "y0": 0,
            "y1": 1,
            "line": {"width": 0},
            "fillcolor": "var(--fail)",
            "opacity": 0.14,
        }
        for begin, end in stalls
    ]
    stalled_s = math.fsum(end - begin for begin, end in stalls)
    return Figure(
        figure,
        {
            "xaxis": axis("seconds since session.start", from_zero=True),
            "yaxis": axis("seconds of video", from_zero=True),
            "shapes": shapes,
        },
        f"{shown.name}: {len(chunks)} chunks, watched at {basis.fps:g} fps; stalls: {len(stalls)}, {stalled_s:.2f} s "
        "in all (shaded). A cross: a chunk that came after the schedule from the start (dotted).",
    )


def intervals(sessions: Sequence[Shown], basis: Basis) -> Figure | None:
    """Each gap over the chunk's place: warm-up and the last chunk stand apart from what is steady."""
    data = []
    longest = 0
    for number, shown in enumerate(sessions):
        records = shown.session.records
        if len(records) < 2:
            continue
        longest = max(longest, records[-1].index)
        data.append(
            line(
                shown.name,
                [record.index for record in records[1:]],
                [record.inter_arrival_s * 1000 for record in records[1:]],
                colour=colour(number),
                marks=["circle"] * (len(records) - 1),
                hovertemplate="chunk %{x}: %{y:.1f} ms",
            )
        )
    if not data:
        return None
    warm = {"type": "rect", "xref": "x", "yref": "paper", "x0": 0, "x1": basis.warmup_chunks - 0.5, "y0": 0, "y1": 1}
    return Figure(
        data,
        {
            "xaxis": axis("chunk", from_zero=True),
            "yaxis": axis("ms since the chunk before", from_zero=True),
            "shapes": [
                {**warm, "line": {"width": 0}, "fillcolor": "var(--c8)", "opacity": 0.12},
                _deadline("y", basis.chunk_deadline_ms),
            ],
        },
        f"Interval before each chunk; the dashed line is the deadline of {basis.chunk_deadline_ms:.0f} ms, the shaded "
        f"part are the {basis.warmup_chunks} warm-up chunks.",
    )


def histogram(values_ms: Sequence[float], basis: Basis) -> Figure | None:
    """Steady intervals of all sessions, counted."""
    if not values_ms:
        return None
    deadline_ms = basis.chunk_deadline_ms
    low, high = min(*values_ms, deadline_ms), max(*values_ms, deadline_ms)
    width = max((high - low) / BINS, 0.001)
    # The deadline is the end of a bar, so that none is in time by half.
    start = deadline_ms - math.ceil((deadline_ms - low) / width) * width
    counts = [0] * (BINS + 2)
    for value in values_ms:
        counts[max(0, math.ceil((value - start) / width) - 1)] += 1
    centres = [start + (place + 0.5) * width for place in range(len(counts))]
    in_time = [centre <= deadline_ms for centre in centres]
    return Figure(
        [
            {
                "type": "bar",
                "x": centres,
                "y": counts,
                "width": [width] * len(counts),
                "marker": {"color": [colour(0) if is_met else "var(--fail)" for is_met in in_time]},
                "name": "steady intervals",
                "hovertemplate": "%{y} at about %{x:.1f} ms<extra></extra>",
            }
        ],
        {
            "xaxis": axis("ms between chunks"),
            "yaxis": axis("chunks", from_zero=True),
            "shapes": [_deadline("x", deadline_ms)],
            "bargap": 0.02,
        },
        f"{len(values_ms)} steady intervals; {sum(value > deadline_ms for value in values_ms)} over the deadline of "
        f"{deadline_ms:.0f} ms (dashed).",
        height=300,
    )


def interactions(sessions: Sequence[Shown]) -> Figure | None:
    """Each event from being sent to its answer, its first picture, its completion."""
    rows: list[str] = []
    ack: list[float] = []
    first: list[float | None] = []
    done: list[float | None] = []
    for shown in sessions:
        for event in shown.session.events:
            times = interaction_times(event, shown.session.arrivals)
            rows.append(f"{shown.name}, {event.event_id}")
            ack.append(times.ack_ms or 0.0)
            first.append(times.first_affected_ms)
            done.append(times.completed_ms)
    if not rows:
        return None
    known = [(row, at) for row, at in zip(rows, first, strict=True) if at is not None]
    ended = [(row, at) for row, at in zip(rows, done, strict=True) if at is not None]
    figure = [
        spans(
            "to the first chunk that it changed",
            [row for row, _ in known],
            [0.0] * len(known),
            [at for _, at in known],
            colour=colour(0),
            hovertemplate="%{x:.0f} ms<extra>%{y}</extra>",
        ),
        _points("acknowledged", ack, rows, "var(--c3)", "line-ns-open"),
        _points("completed", [at for _, at in ended], [row for row, _ in ended], "var(--c2)", "diamond"),
    ]
    never = len(rows) - len(known)
    return Figure(
        figure,
        {"xaxis": axis("ms since the event was sent", from_zero=True), "yaxis": {"autorange": "reversed"}},
        f"{len(rows)} events; {never} never started." if never else f"{len(rows)} events; all started.",
        height=120 + 34 * len(rows),
    )


def lanes(sessions: Sequence[Shown]) -> Figure | None:
    """Sessions over the run: what each waited for its first chunk, and how long it was served."""
    if len(sessions) < 2:
        return None
    zero_ns = min(shown.zero_ns for shown in sessions)
    rows, starts, waits, begins, lengths = [], [], [], [], []
    for shown in sessions:
        chunks = media_chunks(shown.session.arrivals)
        ended_ns = shown.session.times.ended_ns or shown.zero_ns
        first_ns = chunks[0].arrival_ns if chunks else ended_ns
        rows.append(shown.name)
        starts.append((shown.zero_ns - zero_ns) / NS_PER_SECOND)
        waits.append((first_ns - shown.zero_ns) / NS_PER_SECOND)
        begins.append((first_ns - zero_ns) / NS_PER_SECOND)
        lengths.append(max(0.0, (ended_ns - first_ns) / NS_PER_SECOND))
    hover = "%{x:.2f} s<extra>%{y}</extra>"
    return Figure(
        [
            spans("to the first chunk, queue included", rows, starts, waits, colour="var(--c8)", hovertemplate=hover),
            spans("chunks", rows, begins, lengths, colour=colour(0), hovertemplate=hover),
        ],
        {
            "xaxis": axis("seconds since the first session", from_zero=True),
            "yaxis": {"autorange": "reversed"},
            "barmode": "overlay",
        },
        "When each session waited and when it was served.",
        height=120 + 34 * len(rows),
    )


def _stall_span(shown: Shown, playback: FramePlayback, stall: Stall, basis: Basis) -> tuple[float, float]:
    """From when to when the player stood still, seconds; nothing for a wait before the first picture."""
    picture = round(stall.media_seconds * basis.fps)
    end_s = shown.seconds(playback.shown_ns[picture]) or 0.0
    return (end_s, end_s) if picture == 0 else (end_s - stall.duration_ms * NS_PER_MS / NS_PER_SECOND, end_s)


def _before(chunks: Sequence[Any]) -> list[int]:
    """Pictures announced before each chunk."""
    found, total = [], 0
    for chunk in chunks:
        found.append(total)
        total += chunk.announced_frames
    return found


def _known(values: Sequence[float | None]) -> list[float]:
    return [0.0 if value is None else value for value in values]


def _points(name: str, x: Sequence[float], y: Sequence[str], fill: str, symbol: str) -> Json:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": list(x),
        "y": list(y),
        "marker": {"color": fill, "symbol": symbol, "size": 11, "line": {"width": 2}},
        "hovertemplate": name + " after %{x:.1f} ms<extra>%{y}</extra>",
    }


def _deadline(along: str, at_ms: float) -> Json:
    """A dashed line across the figure."""
    made: Json = {"type": "line", "line": {"color": "var(--fail)", "width": 1.5, "dash": "dash"}}
    if along == "x":
        return {**made, "xref": "x", "yref": "paper", "x0": at_ms, "x1": at_ms, "y0": 0, "y1": 1}
    return {**made, "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": at_ms, "y1": at_ms}
