"""Receipts: which frames, how old, and the time of each stage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vision_bench.live.clocks import Offset, Stamp
from vision_bench.live.receipt import (
    STAGES,
    STAMPS,
    TOTALS,
    Cache,
    ChosenFrame,
    NewestFrame,
    Receipt,
    Size,
    cache_of,
    chosen_frame,
    read_receipt,
    receipt_bodies,
    reported_of,
    stage_times,
    visual_tokens_of,
)
from vision_bench.live.ring import Frame

MS = 1_000_000
CAPTURES = Path(__file__).parents[2] / "golden" / "vllm_captures"


def on(clock: str, **readings_ms: float) -> dict[str, Stamp]:
    return {name: Stamp(clock, round(ms * MS)) for name, ms in readings_ms.items()}


WHOLE = Receipt(
    frames=(ChosenFrame("a", 312, 12_480, 33.5, 640, 360, 20_000),),
    newest=(NewestFrame("a", 340, 13_600),),
    stamps=on("camera", captured=5000, sent=5009)
    | on("gateway", arrived=120, released=120.5, decoded=126, stored=128, asked=150, selected=150.25, encoded=151)
    | on("gateway", permitted=160, first_token=250, final_token=400)
    | on("laptop", decided=40, read=301, parsed=302, validated=304.5),
    offsets=(Offset("camera", "gateway", -4_900 * MS, 4 * MS), Offset("laptop", "gateway", 105 * MS, 2 * MS)),
    reported_ms={"upstream_prefill": 60.0, "upstream_decode": 140.0},
    payload_bytes=26_700,
    resized=Size(640, 352),
    visual_tokens=220,
    cache=Cache("thread", True, 512),
)


def numbers(receipt: Receipt) -> dict[str, tuple[float | None, float | None, float | None, str | None]]:
    times = stage_times(receipt, (*STAGES, *TOTALS))
    return {time.stage: (time.ms, time.low_ms, time.high_ms, time.problem) for time in times}


def test_every_stage_of_the_way_has_its_time() -> None:
    """Exact where one clock took both readings, a range where two did, a reason where nothing is known."""
    assert numbers(WHOLE) == {
        "capture": (9, 9, 9, None),
        "transport": (None, 7, 15, None),
        "jitter_buffer": (0.5, 0.5, 0.5, None),
        "decode": (5.5, 5.5, 5.5, None),
        "store": (2, 2, 2, None),
        "request": (None, 3, 7, None),
        "selection": (0.25, 0.25, 0.25, None),
        "encode": (0.75, 0.75, 0.75, None),
        "queue": (9, 9, 9, None),
        "upstream_preprocess": (None, None, None, "no_stamp"),
        "upstream_queue": (None, None, None, "no_stamp"),
        "upstream_prefill": (60, 60, 60, None),
        "upstream_decode": (140, 140, 140, None),
        "first_token": (90, 90, 90, None),
        "final_token": (150, 150, 150, None),
        "sse_transport": (None, 4, 8, None),
        "parse": (1, 1, 1, None),
        "validation": (2.5, 2.5, 2.5, None),
        "capture_to_first_token": (None, 146, 154, None),
        "capture_to_answer": (None, 303.5, 315.5, None),
        "workflow": (264.5, 264.5, 264.5, None),
    }


def test_the_stages_of_the_seed_are_all_there() -> None:
    """From capture over transport, selection, decoding, preprocessing, scheduling and generation to validation."""
    names = [stage.name for stage in STAGES]
    assert {"capture", "transport", "selection", "decode", "upstream_preprocess", "upstream_queue"} < set(names)
    assert {"upstream_prefill", "upstream_decode", "sse_transport", "parse", "validation"} < set(names)
    assert len(set(names)) == len(names)


def test_a_stage_that_runs_backwards_has_no_number() -> None:
    """Neither within a clock, nor across two beyond their bound, nor by the upstream's word: the reason is told."""
    stamps = on("gateway", encoded=10, permitted=9, arrived=3) | on("camera", sent=0)
    offsets = (Offset("camera", "gateway", 5 * MS, MS),)
    found = numbers(Receipt(stamps=stamps, offsets=offsets, reported_ms={"upstream_prefill": -1.0}))
    nothing = (None, None, None, "out_of_order")
    assert (found["queue"], found["transport"], found["upstream_prefill"]) == (nothing, nothing, nothing)
    unreal = Receipt(reported_ms={"upstream_decode": float("nan")})
    assert numbers(unreal)["upstream_decode"] == nothing
    assert receipt_bodies(unreal)["vision_bench"]["reported_ms"] == {}


def test_a_receipt_is_json_and_reads_back() -> None:
    """A client gets the readings and the offsets, adds its own, and computes the stages anew."""
    body = json.loads(json.dumps(receipt_bodies(WHOLE)))
    assert body["overshoot"] == {"cache": {"thread_id": "thread", "cache_hit": True, "cached_input_tokens": 512}}
    ours = body["vision_bench"]
    assert ours["stages"][1] == {
        "stage": "transport",
        "place": "between",
        "clocks": ["camera", "gateway"],
        "ms": None,
        "low_ms": 7.0,
        "high_ms": 15.0,
        "problem": None,
    }
    assert [total["stage"] for total in ours["totals"]] == [total.name for total in TOTALS]
    assert read_receipt(ours) == WHOLE


def test_an_empty_receipt_says_nothing_and_says_so() -> None:
    """No number is made up: no cache hit, no size, no stage."""
    ours = receipt_bodies(Receipt())["vision_bench"]
    assert ours["cache"] == {"thread_id": None, "cache_hit": None, "cached_input_tokens": None}
    assert (ours["frames"], ours["resized"], ours["visual_tokens"], ours["payload_bytes"]) == ((), None, None, None)
    assert {stage["problem"] for stage in ours["stages"] + ours["totals"]} == {"no_stamp"}


def test_a_newer_server_s_receipt_is_read_as_far_as_it_is_known() -> None:
    """Keys, readings and stages that are not known here are left out."""
    ours = receipt_bodies(WHOLE)["vision_bench"] | {"new": 1}
    ours["stamps"] = ours["stamps"] | {"teleported": {"clock": "gateway", "ns": 1}}
    ours["reported_ms"] = ours["reported_ms"] | {"upstream_dream": 3.0}
    assert read_receipt(ours) == WHOLE


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "x",
        {"frames": 3},
        {"stamps": {"asked": 5}},
        {"stamps": {"asked": {"clock": 1, "ns": 2}}},
        {"cache": []},
    ],
)
def test_what_is_no_receipt_is_refused(body: object) -> None:
    """ValueError with the place, never another exception."""
    with pytest.raises(ValueError, match="a receipt"):
        read_receipt(body)


def test_a_reading_that_no_stage_has_is_a_mistake_of_ours() -> None:
    """A misspelt name would silently lose its stage."""
    with pytest.raises(ValueError, match="permited: no stage"):
        Receipt(stamps=on("gateway", permited=1))
    with pytest.raises(ValueError, match="queue: no stage"):
        Receipt(reported_ms={"queue": 1.0})
    assert {"captured", "asked", "permitted", "validated"} < STAMPS


def test_a_chosen_frame_tells_its_age() -> None:
    """From its arrival to its choice; an age below zero is none."""
    frame = Frame(7, 2_000_900_000, received_ns=50 * MS, jpeg=b"jpg", width=4, height=3)
    assert chosen_frame("a", frame, selected_ns=75 * MS) == ChosenFrame("a", 7, 2000, 25.0, 4, 3, 3)
    assert chosen_frame("a", frame, selected_ns=49 * MS).age_ms is None


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Cache("t")),
        ({}, Cache("t")),
        ({"prompt_tokens_details": None}, Cache("t")),
        ({"prompt_tokens_details": {"cached_tokens": None}}, Cache("t")),
        ({"prompt_tokens_details": {"cached_tokens": True}}, Cache("t")),
        ({"prompt_tokens_details": {"cached_tokens": -1}}, Cache("t")),
        ({"prompt_tokens_details": {"cached_tokens": 0}}, Cache("t", False, 0)),
        ({"prompt_tokens_details": {"cached_tokens": 96}}, Cache("t", True, 96)),
    ],
)
def test_the_cache_is_what_the_upstream_tells(usage: dict[str, object] | None, expected: Cache) -> None:
    """No word of it is unknown, not a miss; zero cached tokens is a miss."""
    assert cache_of(usage, thread_id="t") == expected


def test_visual_tokens_are_those_of_pictures() -> None:
    """vLLM counts by kind, and counts sound apart; what is no count is not known, which is not 0."""
    told = {"prompt_tokens_details": {"multimodal_tokens": {"image": 60, "video": 840, "audio": 78}}}
    assert visual_tokens_of(told) == 900
    wrong = {"multimodal_tokens": {"image": "x", "video": True}}
    for odd in (None, {}, {"prompt_tokens_details": None}, {"prompt_tokens_details": wrong}):
        assert visual_tokens_of(odd) is None


def test_the_upstream_tells_its_own_stages() -> None:
    """As vLLM means them: its time to the first token runs from the scheduling, so that with the decoding it is the
    time in which the tokens of a second are counted, and the queue is no part of it."""
    captured = json.loads((CAPTURES / "20a_nocache_fps1_audio.json").read_text(encoding="utf-8"))["response"]
    told, tokens = captured["metrics"], captured["usage"]["completion_tokens"]
    stages = reported_of(told)
    assert stages["upstream_prefill"] + stages["upstream_decode"] == pytest.approx(
        tokens / told["tokens_per_second"] * 1000
    )
    assert stages["upstream_queue"] == told["queue_time_ms"]
    assert reported_of(None) == reported_of({"queue_time_ms": None, "generation_time_ms": float("nan")}) == {}
    assert reported_of({"queue_time_ms": 2.0, "time_to_first_token_ms": -1.0}) == {"upstream_queue": 2.0}
