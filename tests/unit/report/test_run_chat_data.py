"""report.run_chat_data: one pass over records whose truth is known."""

from __future__ import annotations

from tests.unit.bench.chat.made_up import MS
from tests.unit.bench.run_folders import GAP_MS, bad, good

from vision_bench.report.run_chat_data import BINS, Timeline, Worst, coarser, view_records

WINDOW = {1: (0, int(10 * GAP_MS * MS))}


def test_the_timeline_counts_what_is_in_flight() -> None:
    """Ten requests a tenth of a second apart, each 240 ms long: one, two, then three at once, none at the end."""
    view = view_records((good(index, 150) for index in range(10)), WINDOW)
    timeline = view.steps[1].timeline
    levels = timeline.in_flight()
    at = {ms: levels[int(ms * MS // timeline.bin_ns)] for ms in (50, 150, 230, 270)}
    assert at == {50: 1, 150: 2, 230: 3, 270: 2}
    assert levels[-1] == 0 and max(levels) == 3


def test_answers_behind_the_window_are_in_the_timeline() -> None:
    """The last request ends 90 ms after the step: parts go on behind it."""
    view = view_records([good(9, 100)], WINDOW)
    assert view.steps[1].timeline.bins > BINS
    assert view.steps[1].timeline.in_flight()[-1] == 0


def test_what_never_ended_stays_in_flight() -> None:
    """A request that still ran when the step was over."""
    timeline = Timeline(0, int(MS))
    timeline.add(bad(0, outcome="running"))
    assert timeline.in_flight()[-1] == 1 and not timeline.outcomes


def test_distributions_hold_what_the_columns_hold() -> None:
    """Nine answers and a failure: the scheduled ones end at 90 %, service ones stand on nine, gaps on all of theirs."""
    view = view_records([bad(0), *(good(index, 100) for index in range(1, 10))], WINDOW)
    found = view.steps[1].distributions
    assert {name: each.count for name, each in found.items()} == {
        "scheduled_ttft_ms": 10,
        "response_ms": 10,
        "ttft_ms": 9,
        "icl_ms": 81,
    }
    assert found["scheduled_ttft_ms"].ecdf()[-1][1] == 0.9
    assert found["ttft_ms"].ecdf()[-1][1] == 1.0


def test_warm_up_is_in_nothing() -> None:
    """Records of a step that is not shown."""
    view = view_records([good(0, 100)], {2: (0, MS)})
    assert view.steps[2].timeline.due == {} and view.worst.slowest() == []


def test_the_worst_are_the_slowest_and_one_failure_of_each_reason() -> None:
    """Out of a hundred: eight slowest, slowest first; a rare failure is shown although a common one came first."""
    worst = Worst(count=8)
    for index in range(100):
        worst.add(good(index, 100 + (index * 37) % 100))
    for index in range(50):
        worst.add(bad(index))
    worst.add(bad(99, status=None, outcome="truncated"))
    slowest = worst.slowest()
    assert [(record.k_ns[0] - record.due_ns) // MS for record in slowest] == list(range(199, 191, -1))
    assert [record.outcome for record in worst.failed()[:2]] == ["http_error", "truncated"]
    assert len(worst.failed()) == 8


def test_coarser_counts_add_up() -> None:
    """Seven parts as three: sums of neighbours, the last of what is left."""
    assert coarser([1, 2, 3, 4, 5, 6, 7], 3) == [6, 15, 7]
    assert coarser([1, 2], 5) == [1, 2]
