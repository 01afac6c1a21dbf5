"""Stop strings."""

from __future__ import annotations

from vision_bench.engine.chat.stops import StopFilter


def test_text_is_held_back_by_the_length_of_the_stop_string_less_one() -> None:
    """`vid` holds two letters: the captured stream shows an empty chunk, then `6`, then `on`."""
    stops = StopFilter(("vid",))
    assert stops.feed("6") == ("", None)
    assert stops.feed("on") == ("6", None)
    assert stops.feed("vid") == ("on", "vid")


def test_no_stop_string_holds_nothing() -> None:
    """Every piece leaves as it came."""
    assert StopFilter(()).feed("abc") == ("abc", None)


def test_last_piece_releases_what_was_held() -> None:
    """An answer that ends by itself is whole."""
    stops = StopFilter(("####",))
    stops.feed("ab")
    assert stops.feed("c", is_last=True) == ("abc", None)


def test_earliest_match_wins() -> None:
    """Of two stop strings, the one that comes first in the text."""
    assert StopFilter(("c", "b")).feed("abc") == ("a", "b")
