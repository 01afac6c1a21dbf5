"""Frame times: constant or not, and where a border falls."""

from __future__ import annotations

from fractions import Fraction

from vision_bench.media.times import PictureTimes, steady_rate

NTSC = Fraction(30000, 1001)
MILLISECONDS = Fraction(1, 1000)


def steady(rate: Fraction, frames: int, time_base: Fraction = Fraction(1, 90_000), start: int = 0) -> PictureTimes:
    step = 1 / rate / time_base
    pts = tuple(start + round(index * step) for index in range(frames))
    return PictureTimes(pts, time_base, rate, round(step))


def test_millisecond_ticks_of_29_97_are_still_a_constant_rate() -> None:
    """Matroska rounds 33.37 ms steps to 33 and 34: the rate behind them is found, exact."""
    pts = [round(index * 1001 / 30) for index in range(300)]
    assert steady_rate(pts, MILLISECONDS) == NTSC


def test_a_header_that_lies_about_the_rate_is_not_believed() -> None:
    """Frames every 40 ms are 25 a second whatever the header claims."""
    assert steady_rate([0, 40, 80, 120], MILLISECONDS, [Fraction(30), Fraction(50)]) == 25


def test_one_late_frame_makes_the_rate_changing() -> None:
    """A step of 80 ms among steps of 40 is not rounding."""
    assert steady_rate([0, 40, 120, 160, 200], MILLISECONDS) is None


def test_a_single_frame_has_no_rate() -> None:
    """One time tells nothing about steps."""
    assert steady_rate([7], MILLISECONDS, [Fraction(30)]) is None


def test_time_starts_at_the_first_frame_whatever_the_clock_says() -> None:
    """A transport stream whose clock starts at an hour: frame 180 is at 6.006 s."""
    times = steady(NTSC, 200, start=324_126_000)
    assert times.start_of(0) == 0
    assert times.start_of(180) == Fraction(6006, 1000)


def test_a_frame_on_a_border_belongs_to_the_clip_that_starts_there() -> None:
    """At 24 a second frame 144 is at 6 s exactly: it is the second clip's first."""
    times = steady(Fraction(24), 300)
    assert times.first_at_or_after(Fraction(6)) == 144
    assert times.first_at_or_after(Fraction(6) + Fraction(1, 90_000)) == 145


def test_a_border_moves_to_the_next_frame() -> None:
    """At 29.97 no frame is at 6 s: the border of picture and sound is frame 180, at 6.006 s."""
    assert steady(NTSC, 400).border(Fraction(6)) == Fraction(6006, 1000)


def test_a_border_in_a_long_hole_stays() -> None:
    """No frame between 2 s and 5 s: a border wanted at 3 s stays there, so that the sound of the hole is kept."""
    times = PictureTimes((0, 1000, 2000, 5000), MILLISECONDS, None, 1000)
    assert times.border(Fraction(3)) == 3
    assert times.border(Fraction(9, 2)) == 5


def test_a_border_after_the_end_is_where_it_was_wanted() -> None:
    """A source of 2.5 s: the border at 6 s stays, so that sound which outlasts the picture is kept."""
    assert steady(Fraction(30), 75).border(Fraction(6)) == 6


def test_duration_counts_the_last_frame() -> None:
    """Frames at 0, 1 and 3 s, the last shown for half a second: 3.5 s, 0.857 a second in the mean."""
    times = PictureTimes((0, 1000, 3000), MILLISECONDS, None, 500)
    assert times.duration == Fraction(7, 2)
    assert times.mean_rate == Fraction(6, 7)


def test_one_frame_of_unknown_length_has_no_rate() -> None:
    """No data is None, never 0."""
    assert PictureTimes((5,), MILLISECONDS, None, 0).mean_rate is None
