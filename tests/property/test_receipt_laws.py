"""Laws of receipts: no stage is ever negative, and what is written is what is read."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from vision_bench.live.clocks import Offset, Stamp
from vision_bench.live.receipt import (
    REPORTED,
    STAMPS,
    Cache,
    ChosenFrame,
    Receipt,
    Size,
    read_receipt,
    receipt_bodies,
)

NS = st.integers(-(2**63), 2**63 - 1)
CLOCKS = st.sampled_from(["camera", "gateway", "laptop"])
COUNTS = st.integers(0, 10**9)
FRAMES = st.builds(
    ChosenFrame, st.text(max_size=5), COUNTS, COUNTS, st.none() | st.floats(0, 1e9), COUNTS, COUNTS, COUNTS
)
RECEIPTS = st.builds(
    Receipt,
    frames=st.lists(FRAMES, max_size=2).map(tuple),
    stamps=st.dictionaries(st.sampled_from(sorted(STAMPS)), st.builds(Stamp, CLOCKS, NS)),
    offsets=st.lists(st.builds(Offset, CLOCKS, CLOCKS, NS, st.integers(0, 2**62)), max_size=3).map(tuple),
    reported_ms=st.dictionaries(st.sampled_from(REPORTED), st.floats(-1e9, 1e9)),
    payload_bytes=st.none() | COUNTS,
    resized=st.none() | st.builds(Size, COUNTS, COUNTS),
    visual_tokens=st.none() | COUNTS,
    cache=st.builds(Cache, st.none() | st.text(max_size=3), st.none() | st.booleans(), st.none() | COUNTS),
)


@given(RECEIPTS)
def test_no_stage_is_negative(receipt: Receipt) -> None:
    """Whatever the readings: numbers from zero up and in order, or none and a reason."""
    ours = receipt_bodies(receipt)["vision_bench"]
    for stage in ours["stages"] + ours["totals"]:
        if stage["problem"]:
            assert stage["ms"] is stage["low_ms"] is stage["high_ms"] is None
        else:
            assert 0 <= stage["low_ms"] <= stage["high_ms"]
            assert stage["ms"] in (None, stage["low_ms"])


@given(RECEIPTS)
def test_a_receipt_survives_json(receipt: Receipt) -> None:
    """Every reading and number is the same after a journey as strict JSON."""
    text = json.dumps(receipt_bodies(receipt), allow_nan=False)
    assert read_receipt(json.loads(text)["vision_bench"]) == receipt
