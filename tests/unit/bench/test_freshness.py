"""bench.freshness: ages, deadlines and sustained cameras, from made-up answers."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.bench.cameras import CameraLoad
from vision_bench.bench.freshness import Frame, Freshness, age_of_information, judge_cameras, sustained
from vision_bench.bench.verdict import Evidence

MS = 1_000_000
LOAD = CameraLoad(1, 100 * MS, "newest", 100 * MS)


def frame(due_ms: int, usable_ms: int | None, camera: int = 0) -> Frame:
    return Frame(camera, due_ms * MS, None if usable_ms is None else usable_ms * MS)


def test_age_of_information_grows_with_time_and_falls_to_the_age_of_what_was_answered() -> None:
    """Frames at 0 and 100 answered at 50 and 150: from 50 the age goes 50 to 150, falls to 50, goes to 100 at 200."""
    mean, peaks = age_of_information([frame(0, 50), frame(100, 150)], 200 * MS)
    assert peaks == [150]
    assert mean == pytest.approx((100 * (50 + 150) / 2 + 50 * (50 + 100) / 2) / 150)


def test_an_answer_about_an_older_frame_is_no_news() -> None:
    """The frame of 100 was answered before that of 0: the later answer lowers nothing."""
    late, _ = age_of_information([frame(100, 150), frame(0, 180)], 200 * MS)
    alone, _ = age_of_information([frame(100, 150)], 200 * MS)
    assert late == alone == 75


def test_without_an_answer_there_is_no_age() -> None:
    """None, and no peak; cameras do not mix."""
    assert age_of_information([frame(0, None)], 200 * MS) == (None, [])
    mean, peaks = age_of_information([frame(0, 100, camera=0), frame(0, 100, camera=1)], 200 * MS)
    assert (mean, peaks) == (150, [])


def tally(outcomes: list[tuple[Frame, str]]) -> Freshness:
    made = Freshness(LOAD)
    for one, outcome in outcomes:
        made.add(one, outcome)
    return made


def test_every_frame_that_was_due_is_on_time_or_missed() -> None:
    """Answered in time, late, dropped, failed: three of four are missed, and each is told by its cause."""
    made = tally(
        [
            (frame(0, 100), "ok"),
            (frame(100, 201), "ok"),
            (frame(200, None), "dropped"),
            (frame(300, None), "http_error"),
        ]
    )
    said = made.summary(4, 400 * MS)
    assert said["frames"] == {"due": 4, "answered": 2, "late": 1, "dropped": 1, "failed": 1}
    assert (said["missed"], said["miss_ratio"], said["is_sustained"]) == (3, 0.75, False)
    assert said["age_at_use_ms"]["count"] == 2 and said["age_at_use_ms"]["max"] == 101
    assert said["updates_per_second"] == 5


def evidence(due: int, ok: int, **more: Any) -> Evidence:
    given: dict[str, Any] = {
        "due": due, "ok": ok, "is_complete": True, "window_seconds": due / 10, "offered_rate": 10.0, "lag_p99_ms": 0.1,
        "loop_lag_p99_ms": 1.0, "cpu_share": 0.1, "response_p50_ms": 50.0,
    }  # fmt: skip
    return Evidence(**given | more)


def of(on_time: int, late: int, dropped: int = 0) -> Freshness:
    frames = [(frame(0, 50), "ok")] * on_time + [(frame(0, 150), "ok")] * late
    return tally(frames + [(frame(0, None), "dropped")] * dropped)


@pytest.mark.parametrize(
    ("made", "more", "verdict"),
    [
        (of(200, 0), {}, "STABLE"),
        (of(100, 100), {}, "SATURATED"),
        (of(150, 0, dropped=50), {"ok": 150}, "SATURATED"),
        (of(190, 10), {}, "UNDETERMINED"),
        (of(200, 0), {"lag_p99_ms": 50.0}, "CLIENT-LIMITED"),
        (of(100, 100), {"lag_p99_ms": 50.0}, "CLIENT-LIMITED"),
        (of(100, 100), {"lag_p99_ms": 3.0, "cpu_share": 0.9}, "SATURATED"),
        (of(150, 0), {"ok": 150, "failures": "http_error 50"}, "UNDETERMINED"),
        (of(200, 0), {"is_complete": False}, "UNDETERMINED"),
        (of(10, 0), {"due": 10, "ok": 10}, "UNDETERMINED"),
        (of(200, 0), {"doubts": ["cached"]}, "UNDETERMINED"),
    ],
)
def test_cameras_are_sustained_where_few_misses_are_shown(made: Freshness, more: dict[str, Any], verdict: str) -> None:
    """Not where they are merely not seen; frames that were dropped are missed, what failed is a doubt."""
    assert judge_cameras(evidence(**{"due": 200, "ok": 200} | more), made).name == verdict


def test_a_run_sustains_the_most_cameras_of_a_stable_step() -> None:
    """And says which number above it was too many; a run without cameras says nothing."""
    steps = [
        {"live": {"cameras": count}, "verdict": verdict}
        for count, verdict in ((1, "STABLE"), (8, "SATURATED"), (4, "STABLE"), (16, "SATURATED"))
    ]
    assert sustained(steps) == {"cameras": 4, "failed_at": 8, "max_missed": 0.05}
    assert sustained([{"live": None, "verdict": "STABLE"}]) is None
