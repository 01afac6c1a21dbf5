"""bench.cameras: when frames are there, and which are sent."""

from __future__ import annotations

from itertools import pairwise

import pytest

from vision_bench.bench.cameras import CameraLoad, Drop, Mailbox, camera_schedule
from vision_bench.errors import InvalidRequest

MS = 1_000_000


def load(count: int = 3, *, drop: Drop = "newest") -> CameraLoad:
    return CameraLoad(count, 100 * MS, drop, 100 * MS)


def test_every_camera_has_a_frame_each_period_at_its_own_phase() -> None:
    """Three cameras, 1 s: ten frames each, 100 ms apart, the phases from the seed."""
    schedule = camera_schedule(load(), duration_seconds=1.05, seed="7")
    assert (len(schedule.offsets_ns), schedule.window_ns, schedule.rate) == (30, 1000 * MS, 30)
    assert list(schedule.offsets_ns) == sorted(schedule.offsets_ns)
    for camera in range(3):
        own = [at for index, at in enumerate(schedule.offsets_ns) if load().camera(index) == camera]
        assert {later - earlier for earlier, later in pairwise(own)} == {100 * MS}
    assert schedule == camera_schedule(load(), duration_seconds=1, seed="7")
    assert schedule.sha256 != camera_schedule(load(), duration_seconds=1, seed="8").sha256


@pytest.mark.parametrize("seconds", [0.05, 1e9])
def test_a_step_without_a_whole_period_or_with_too_many_frames_is_refused(seconds: float) -> None:
    """By its number of frames."""
    with pytest.raises(InvalidRequest, match="frames; it must be 1 to"):
        camera_schedule(load(), duration_seconds=seconds, seed="0")


@pytest.mark.parametrize(
    ("drop", "sent", "dropped"),
    [("newest", [1, 4], [2, 3]), ("busy", [1], [2, 3, 4]), ("none", [1, 2, 3, 4], [])],
)
def test_what_becomes_of_frames_that_come_while_one_is_out(drop: Drop, sent: list[int], dropped: list[int]) -> None:
    """Four frames before the first answer: the newest wins, or all are dropped, or all are sent in order."""
    lost: list[int] = []
    box: Mailbox[int] = Mailbox(drop, lost.append)
    frames = [box.offer(number) for number in (1, 2, 3, 4)]
    assert frames == [1, None, None, None]
    got = [1]
    while (frame := box.next()) is not None:
        got.append(frame)
    assert (got, lost) == (sent, dropped)
    assert box.offer(5) == 5, "an idle camera sends at once"


def test_what_still_waits_can_be_taken_out() -> None:
    """Once."""
    box: Mailbox[int] = Mailbox("none", lambda _: None)
    for number in (1, 2, 3):
        box.offer(number)
    assert (box.empty(), box.empty(), box.next()) == ([2, 3], [], None)
