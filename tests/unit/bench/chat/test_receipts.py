"""bench.chat.receipts: both halves of a receipt as one table of stages."""

from __future__ import annotations

import random
from typing import Any

import pytest

from vision_bench.bench.chat.receipts import Receipts
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.live.receipt import STAGES, TOTALS

MS = 1_000_000
SERVER_AHEAD_MS, CAMERA_AHEAD_MS = 5_000_000.0, -7_000_000.0
PATH = (
    *("captured", "sent", "arrived", "stored", "decided", "hdr", "asked", "selected", "encoded", "permitted"),
    *("first_token", "heard", "final_token", "read", "parsed", "validated"),
)
"""In the order in which they happen."""
CAMERA, CLIENT = {"captured", "sent"}, {"decided", "hdr", "heard", "read", "parsed", "validated"}


def record_at(at_ms: dict[str, float], *, offset_bound_ms: float = 0.5, **more: Any) -> ChatRecord:
    """A record whose readings were taken at these true times, each on the clock of who took it."""

    def stamp(name: str) -> dict[str, Any]:
        is_camera = name in CAMERA
        ahead_ms = CAMERA_AHEAD_MS if is_camera else SERVER_AHEAD_MS
        return {"clock": "camera" if is_camera else "server", "ns": round((at_ms[name] + ahead_ms) * MS)}

    wrong_ms = offset_bound_ms * 0.9  # told wrongly, within the bound
    offset_ns = round((SERVER_AHEAD_MS - CAMERA_AHEAD_MS + wrong_ms) * MS)
    offset = {"behind": "camera", "ahead": "server", "offset_ns": offset_ns, "bound_ns": round(offset_bound_ms * MS)}
    receipt = {
        "stamps": {name: stamp(name) for name in at_ms if name not in CLIENT},
        "offsets": [offset],
        "frames": [
            {
                "stream_id": "s",
                "frame_index": 7,
                "timestamp_ms": 700,
                "age_ms": 12.0,
                "width": 4,
                "height": 2,
                "size_bytes": 9,
            }
        ],
    }
    ours = {name: round(at_ms[name] * MS) for name in CLIENT if name in at_ms}
    return ChatRecord(
        step=1,
        index=0,
        ordinal=0,
        due_ns=ours["decided"],
        outcome="ok",
        dec_ns=ours["decided"],
        hdr_ns=ours["hdr"],
        k_ns=[ours["heard"]] if "heard" in ours else [],
        end_ns=ours["read"],
        par_ns=ours["parsed"],
        val_ns=ours["validated"],
        receipt=receipt | more,
    )


def summary_of(*records: ChatRecord) -> tuple[dict[str, Any], dict[str, Any]]:
    """The summary, and its rows by stage."""
    receipts = Receipts()
    for record in records:
        receipts.add(record)
    summary = receipts.summary()
    assert summary is not None
    return summary, {row["stage"]: row for row in (*summary["stages"], *summary["totals"])}


@pytest.mark.parametrize("seed", range(20))
def test_ranges_hold_the_truth_and_nothing_is_negative(seed: int) -> None:
    """Three clocks hours apart, ways of any length: what one clock measured is exact, what crosses two is a range that
    holds the true time, and no end of it lies below zero."""
    drawn = random.Random(seed)
    now, at_ms = 1000.0, {}
    for name in PATH:
        at_ms[name] = now
        now += drawn.choice([0.01, 0.3, 4.0, 60.0])
    _, rows = summary_of(record_at(at_ms))
    for stage in (*STAGES, *TOTALS):
        if stage.start not in at_ms or stage.end not in at_ms:
            continue
        row, true_ms = rows[stage.name], at_ms[stage.end] - at_ms[stage.start]
        if row["ms"] is not None:
            assert row["ms"]["mean"] == pytest.approx(true_ms, abs=1e-3)
            assert (row["low_ms"], row["offset"]) == (None, None)
        else:
            assert 0 <= row["low_ms"]["mean"] <= true_ms + 1e-3
            assert true_ms - 1e-3 <= row["high_ms"]["mean"]
            assert len(row["clocks"]) == 2
            assert row["offset"]["bound_ms"]["mean"] > 0


def test_who_tells_a_stage_and_what_nobody_told() -> None:
    """Each stage has its source and clocks; a pushed JPEG is not decoded, and the upstream told one of its stages."""
    at_ms = {name: float(place) for place, name in enumerate(PATH)}
    summary, rows = summary_of(
        record_at(at_ms, reported_ms={"upstream_prefill": 0.5}, payload_bytes=900, visual_tokens=66)
    )
    assert rows["capture"]["source"] == "receipt: the camera's clock"
    assert rows["capture"]["clocks"] == ["camera"]
    assert (rows["transport"]["source"], rows["transport"]["clocks"]) == ("across clocks", ["camera", "server"])
    assert rows["request"]["clocks"] == ["run", "server"]
    assert rows["request"]["offset"]["ahead"] == "server"
    assert rows["request"]["offset"]["offset_ms"] == pytest.approx(SERVER_AHEAD_MS, abs=10)
    assert rows["parse"]["source"] == "client"
    assert rows["upstream_prefill"]["ms"]["mean"] == 0.5
    for name in ("jitter_buffer", "decode", "upstream_queue"):
        assert (rows[name]["source"], rows[name]["ms"], rows[name]["low_ms"]) == ("unknown", None, None)
        assert rows[name]["problems"] == {"no_stamp": 1}
    assert summary["frames"]["age_ms"]["mean"] == 12.0
    assert (summary["frames"]["distinct_newest"], summary["payload_bytes"]["mean"]) == (1, 900)
    assert summary["visual_tokens"]["mean"] == 66
    assert summary["cache"] == {"told": 0, "hits": None, "cached_input_tokens": None}


def test_readings_that_contradict_each_other_give_no_number() -> None:
    """A frame that arrived a second before it was sent, with clocks known to half a millisecond: the stage is counted
    as out of order, beside an answer where it is in order."""
    at_ms = {name: float(place) for place, name in enumerate(PATH)}
    wrong = at_ms | {"captured": 1000.0, "sent": 1001.0}
    _, rows = summary_of(record_at(at_ms), record_at(wrong))
    assert rows["transport"]["problems"] == {"out_of_order": 1}
    assert rows["transport"]["high_ms"]["count"] == 1
    assert rows["transport"]["source"] == "across clocks"


def test_the_cache_is_what_the_upstream_told() -> None:
    """A hit, a miss, and an answer that says nothing."""
    at_ms = {name: float(place) for place, name in enumerate(PATH)}
    told = [
        {"thread_id": None, "cache_hit": True, "cached_input_tokens": 32},
        {"thread_id": None, "cache_hit": False, "cached_input_tokens": 0},
        {"thread_id": None, "cache_hit": None, "cached_input_tokens": None},
    ]
    summary, _ = summary_of(*(record_at(at_ms, cache=cache) for cache in told))
    assert summary["cache"] == {"told": 2, "hits": 1, "cached_input_tokens": 32}


def test_newest_frames_are_those_of_the_streams_where_receipts_name_them() -> None:
    """Segments that end with the same frame on the grid while the stream goes on are about different moments; a record
    whose receipt does not name them has the last frame chosen."""
    at_ms = {name: float(place) for place, name in enumerate(PATH)}
    newest = [[{"stream_id": "s", "frame_index": index, "timestamp_ms": index * 100}] for index in (8, 9, 9)]
    told = [record_at(at_ms, newest=seen) for seen in newest]
    assert summary_of(*told)[0]["frames"]["distinct_newest"] == 2
    assert summary_of(*told, record_at(at_ms), record_at(at_ms))[0]["frames"]["distinct_newest"] == 3


def test_a_run_without_receipts_has_none() -> None:
    """No receipt, and one that is none: there is no table of nothing."""
    receipts = Receipts()
    at_ms = {name: float(place) for place, name in enumerate(PATH)}
    bad = record_at(at_ms, stamps="x")
    receipts.add(bad)
    bad.receipt = None
    receipts.add(bad)
    assert receipts.summary() is None
