"""The page of a run of generated video."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.bench.realtime.made_steps import session

from vision_bench.bench.column import column
from vision_bench.bench.realtime.kind import KIND
from vision_bench.bench.realtime.record import observation
from vision_bench.bench.realtime.records import NS_PER_MS, SentEvent
from vision_bench.bench.realtime.summary import Basis
from vision_bench.bench.rundir import MANIFEST, RECORDS, STEPS, is_run_folder
from vision_bench.bench.summary import write_summary
from vision_bench.report.realtime import realtime_tiles
from vision_bench.report.realtime_figures import Shown, histogram, interactions, intervals, lanes, timeline
from vision_bench.report.run_page import write_run_page

BASIS = Basis(fps=16.0, width=64, height=48)
SLOW = Shown("session 0", observation(session(gap_ms=800)))


def test_stalls_are_shaded_where_the_player_stood_still() -> None:
    """Chunks 800 ms apart that play for 750: each comes later than it is needed, and each wait is one rectangle."""
    figure = timeline(SLOW, BASIS)
    assert figure is not None
    shapes = figure.layout["shapes"]
    assert len(shapes) == 8
    assert all(0.0 < shape["x1"] - shape["x0"] < 0.31 for shape in shapes)
    assert [shape["x1"] for shape in shapes][:2] == pytest.approx([1.8, 2.6])
    late = next(trace for trace in figure.data if trace["name"] == "chunk after its schedule")
    assert len(late["x"]) == 8


def test_a_session_that_never_played_has_no_timeline() -> None:
    """No chunk, or a buffer that was not filled."""
    assert timeline(Shown("x", observation(session(chunks=0, ended_ns=5))), BASIS) is None
    assert timeline(SLOW, Basis(fps=16.0, width=64, height=48, buffer_chunks=10)) is None


def test_a_session_without_a_chunk_leaves_the_median_on_the_tile() -> None:
    """No mean holds what never came: five of six sessions had a first chunk, and the page says when."""
    step = {
        "requests": {"ok": 5, "due": 6, "failed": 1},
        "startup": {"ttfc_ms": column([300.0, 301.0, 302.0, 303.0, 304.0, math.inf])},
        "chunks": {
            "deadlines": {"met": 0, "missed": 0, "attainment": None},
            "interval_steady_ms": column([]),
            "video_rtf": column([]),
        },
        "pictures": {"stalls": 0, "sessions_played": 5},
    }
    tile = realtime_tiles({"steps": [step]})[1]
    assert (tile.value, tile.label) == ("302 ms", "median time to first chunk (6, some had none)")


def test_intervals_and_their_histogram_count_every_gap() -> None:
    """Eight gaps of nine chunks; the bins hold all of them, and those over the deadline are said."""
    figure = intervals([SLOW], BASIS)
    assert figure is not None
    assert figure.data[0]["x"] == [1, 2, 3, 4, 5, 6, 7, 8]
    counted = histogram([700.0, 700.0, 760.0], BASIS)
    assert counted is not None
    assert sum(counted.data[0]["y"]) == 3
    bars = zip(counted.data[0]["y"], counted.data[0]["marker"]["color"], strict=True)
    assert sum(count for count, colour in bars if colour == "var(--fail)") == 1
    assert "3 steady intervals; 1 over the deadline of 750 ms" in counted.says
    assert histogram([], BASIS) is None
    assert intervals([Shown("x", observation(session(chunks=1)))], BASIS) is None


def test_events_are_drawn_from_being_sent() -> None:
    """One that started, one that never did: both have a row, the bar is of the first alone."""
    record = session()
    record.events[:] = [
        SentEvent("a", 1100 * NS_PER_MS, 1110 * NS_PER_MS),
        SentEvent("b", 1200 * NS_PER_MS, 1210 * NS_PER_MS),
    ]
    record.chunks[3] = replace(record.chunks[3], started_event_ids=("a",))
    figure = interactions([Shown("s", observation(record))])
    assert figure is not None
    assert figure.says == "2 events; 1 never started."
    assert figure.data[0]["x"] == [2000.0]
    assert interactions([SLOW]) is None


def test_lanes_need_more_than_one_session() -> None:
    """Waiting and being served are told apart only beside each other."""
    other = Shown("session 1", observation(session(1, start_ms=500)))
    figure = lanes([SLOW, other])
    assert figure is not None
    assert figure.data[0]["x"] == [1.0, 1.0]
    assert figure.data[1]["base"] == [1.0, 1.5]
    assert lanes([SLOW]) is None


def made_folder(folder: Path, **values: Any) -> Path:
    """A run folder of two sessions, one of which failed."""
    kept = {"num_chunks": 9, "num_frames": 105, "width": 64, "height": 48, "fps": 16, "seed": 1, "flow_shift": 5.0}
    manifest = {
        "kind": "realtime",
        "run_id": "vb-1",
        "started_at": "2026-01-02T03:04:05Z",
        "labels": {"model": "m", "media": "x", "watched_at_fps": 16.0, "region": None},
        "plan": [{}],
        "environment": {"git_revision": None},
        "workload": {
            "name": "made",
            "fingerprint": "f",
            "url": "ws://h/v1/realtime/video",
            "values": {"model": "m", **kept, "video_seconds": 6.6, "prompt_updates": [], **values},
            "basis": {"fps": 16.0, "width": 64, "height": 48},
            "warnings": [],
            "decodes": False,
            "saves_video": False,
        },
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))
    shown = dict.fromkeys(("rate", "concurrency", "arrivals", "schedule_sha256", "offered_rate"))
    begin = {"step": 2, "event": "begin", "plan": 0, "name": "one lane", "load": "closed", "round": 0, "begin_ns": 0}
    end = {"step": 2, "event": "end", "window_ns": 10**10, "is_complete": True}
    (folder / STEPS).write_text("".join(json.dumps(line) + "\n" for line in (begin | shown, end)))
    failed = session(1, outcome="late_error", detail="<b>400</b>", start_ms=9000)
    lines = [msgspec.json.encode(record) for record in (session(), failed)]
    (folder / RECORDS).write_bytes(b"".join(line + b"\n" for line in lines))
    return folder


def test_the_page_of_a_folder_says_it_all_and_escapes_it(tmp_path: Path) -> None:
    """Made from the records alone; what a server said is text, never markup."""
    folder = made_folder(tmp_path, model="<script>x</script>")
    assert is_run_folder(folder)
    summary = write_summary(folder)
    assert summary["steps"][0]["requests"]["outcomes"] == {"late_error": 1, "ok": 1}
    page = write_run_page(folder, summary, made_at=datetime(2026, 1, 2, tzinfo=UTC))
    assert page == folder / "report.html"
    text = page.read_text(encoding="utf-8")
    assert "&lt;b&gt;400&lt;/b&gt;" in text
    assert "<b>400</b>" not in text
    assert "<script>x" not in text
    assert "1 of 2" in text
    assert (folder / "report.json").is_file()
    assert KIND.has_long_requests
