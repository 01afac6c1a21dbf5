"""Which frames go into which clip, what is skipped and why."""

from __future__ import annotations

from fractions import Fraction

import pytest

from vision_bench.errors import InvalidRequest
from vision_bench.media.plan import Plan, chunks, has_sound_in, plan_windows
from vision_bench.media.times import PictureTimes


def steady(seconds: float, rate: int = 30) -> PictureTimes:
    return PictureTimes(tuple(range(round(seconds * rate))), Fraction(1, rate), Fraction(rate), 1)


def plan(times: PictureTimes, start: int = 0, end: int | None = None, remainder: str = "0.5") -> Plan:
    return plan_windows(
        times,
        start=Fraction(start),
        end=None if end is None else Fraction(end),
        length=Fraction(6),
        min_remainder=Fraction(remainder),
    )


def test_the_seeds_range_makes_its_hundred_names() -> None:
    """600 s to 1200 s of a long source: 0001_0600-0606.mp4 to 0100_1194-1200.mp4, 180 frames each."""
    made = plan(steady(1300), 600, 1200)
    assert (made.asked, len(made.cut), made.skipped) == (100, 100, ())
    assert [made.cut[0].name, made.cut[-1].name] == ["0001_0600-0606.mp4", "0100_1194-1200.mp4"]
    assert {window.frames for window in made.cut} == {180}


def test_a_source_that_ends_before_the_range_gives_nothing_but_says_why() -> None:
    """14.5 s and a range from 600 s: 100 asked, none cut, each with its reason."""
    made = plan(steady(14.5), 600, 1200)
    assert (made.asked, made.cut, len(made.skipped)) == (100, (), 100)
    assert "after the source's end at 14.500 s" in made.skipped[0][1]


def test_a_remainder_is_cut_and_known_to_be_short() -> None:
    """14.5 s in sixes: 6 + 6 + 2.5; the last one is short."""
    made = plan(steady(14.5), 0, 18)
    assert [float(window.held) for window in made.cut] == [6, 6, 2.5]
    assert [window.is_short for window in made.cut] == [False, False, True]


def test_a_remainder_under_the_minimum_is_listed() -> None:
    """12.3 s: the last 0.3 s are not cut, and not forgotten."""
    made = plan(steady(12.3), 0, 18)
    assert len(made.cut) == 2
    assert made.skipped[0][1] == "a remainder of 0.300 s, under the minimum of 0.5 s"


def test_a_source_shorter_than_the_minimum_still_gives_its_first_clip() -> None:
    """One frame: better one short clip with a warning than none."""
    made = plan(steady(1 / 30), 0, 6)
    assert [window.frames for window in made.cut] == [1]
    assert made.cut[0].is_short


def test_the_end_of_the_source_asks_for_as_many_as_its_frames_need() -> None:
    """180 frames at 29.97 last 6.006 s: one clip, not one and a sliver."""
    rate = Fraction(30000, 1001)
    times = PictureTimes(tuple(1001 * index for index in range(180)), Fraction(1, 30_000), rate, 1001)
    assert plan(times).asked == 1


def test_a_range_that_ends_inside_a_window_ends_the_last_clip_there() -> None:
    """0 to 10 s in sixes: the second clip is 0002_0006-0010.mp4, and not short: that was asked for."""
    made = plan(steady(60), 0, 10)
    assert [window.name for window in made.cut] == ["0001_0000-0006.mp4", "0002_0006-0010.mp4"]
    assert not made.cut[1].is_short


@pytest.mark.parametrize(("start", "end"), [(6, 6), (7, 6), (-1, 6)])
def test_a_range_that_holds_nothing_is_refused(start: int, end: int) -> None:
    """The message holds the values and the remedy."""
    with pytest.raises(InvalidRequest, match=rf"from {start} s to {end} s .*; give 0 <= start < end"):
        plan(steady(60), start, end)


def test_sound_is_looked_for_packet_by_packet() -> None:
    """A track that ends at 2 s has no sound for the window from 2 s on."""
    packets = [index * 0.02 for index in range(100)]
    assert has_sound_in(packets, 0, 6)
    assert not has_sound_in(packets, 2, 6)
    assert not has_sound_in([], 0, 6)


def test_runs_keep_neighbours_together_and_every_worker_busy() -> None:
    """Ten windows for two: four runs, two each. Two windows for two: one each. A gap breaks a run."""
    windows = plan(steady(60), 0, 60).cut
    assert [len(run) for run in chunks(windows, jobs=2, largest=4)] == [2, 3, 2, 3]
    assert [len(run) for run in chunks(windows[:2], jobs=2, largest=4)] == [1, 1]
    assert chunks((), jobs=2, largest=4) == []
    holed = (*windows[:2], *windows[3:5])
    assert [[window.seq for window in run] for run in chunks(holed, jobs=1, largest=4)] == [[1, 2], [4, 5]]


@pytest.mark.parametrize(("end", "length"), [(1e9, 6), (12, Fraction(1, 100_000))])
def test_a_slip_of_the_keyboard_is_refused(end: float, length: Fraction) -> None:
    """More windows than anybody means would fill the memory before the first is cut."""
    with pytest.raises(InvalidRequest, match="--length"):
        plan_windows(
            steady(14.5), start=Fraction(0), end=Fraction(end), length=Fraction(length), min_remainder=Fraction(0)
        )
