"""Where a thread's questions go."""

from __future__ import annotations

from collections import Counter

from vision_bench.gateway.live_threads import place_of


def test_a_thread_keeps_its_place_while_it_is_there() -> None:
    """When one of three places goes, only its own threads move; when it comes back, they are there again."""
    threads = [("ann", f"thread-{number}") for number in range(300)]
    all_three = {thread: place_of(thread, (0, 1, 2)) for thread in threads}
    without_one = {thread: place_of(thread, (0, 2)) for thread in threads}
    assert all(without_one[thread] == place for thread, place in all_three.items() if place != 1)
    counts = Counter(all_three.values())
    assert all(60 <= counts[place] <= 140 for place in range(3))


def test_owners_do_not_share_places() -> None:
    """The same name of two owners is two threads, however names and owners are cut."""
    assert place_of(("a", "bc"), range(1000)) != place_of(("ab", "c"), range(1000))
    assert place_of(("ann", "\ud800"), (4,)) == 4
