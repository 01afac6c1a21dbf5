"""The times of a film that stands in for a camera."""

from __future__ import annotations

from vision_bench.live.films import STILL_SECONDS, Rounds


def shown(rounds: Rounds, *seconds: float) -> list[float]:
    """The times of one round's pictures."""
    times = [rounds.at(each) for each in seconds]
    rounds.end()
    return times


def test_the_last_picture_of_a_round_is_shown_as_long_as_the_others() -> None:
    """Two pictures a tenth apart come ten a second for ever; so do those of a film whose pace changes at its end."""
    rounds = Rounds(began=5.0)
    times = [each for _ in range(3) for each in shown(rounds, 0.0, 0.1)]
    assert [round(each, 6) for each in times] == [5.0, 5.1, 5.2, 5.3, 5.4, 5.5]
    assert shown(rounds, 0.0, 0.1, 0.5)[0] == rounds.began - 0.9


def test_a_film_of_one_picture_comes_once_a_second() -> None:
    """It would come as fast as it can be opened."""
    rounds = Rounds()
    assert [shown(rounds, 0.0) for _ in range(3)] == [[0.0], [STILL_SECONDS], [2 * STILL_SECONDS]]


def test_a_round_without_a_picture_takes_no_time() -> None:
    """And two pictures of one time do not make a pace of their own."""
    rounds = Rounds()
    rounds.end()
    assert rounds.began == 0.0
    shown(rounds, 0.0, 0.0)
    assert rounds.began == STILL_SECONDS
