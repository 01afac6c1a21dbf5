"""report.clips: lines of a results file as cards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.unit.report.lines import GOOD

from vision_bench.client.results import ResultLine, Results
from vision_bench.report.charts import LABEL_WIDTH, STRIP_HEIGHT, STRIP_WIDTH, latency_strip, race
from vision_bench.report.clips import Card, find_clip, make_cards, total

LINE = replace(
    GOOD,
    clip="clips/0001.mp4",
    clip_id="0001",
    result={"scene": "S", "speech": "P", "on_screen_text": "", "summary": "U"},
    elapsed_ms=100,
)


def cards(*lines: ResultLine) -> list[Card]:
    return make_cards(Results(lines), with_pictures=False)


def test_failures_come_first_then_warnings_then_the_rest_each_by_path() -> None:
    """Who opens the page sees what went wrong."""
    made = cards(
        LINE,
        replace(LINE, clip="clips/0002.mp4", warnings=("no_audio",)),
        replace(LINE, clip="clips/0004.mp4", outcome="length", result=None),
        replace(LINE, clip="clips/0003.mp4", outcome="http_error", result=None),
    )
    assert [(card.kind, card.line.clip[-8:-4]) for card in made] == [
        ("fail", "0003"),
        ("fail", "0004"),
        ("warn", "0002"),
        ("ok", "0001"),
    ]


def test_the_summary_leads_and_nothing_is_shown_as_nothing() -> None:
    """Fields of the default question in the order of a reader; an empty one is a dash."""
    (card,) = cards(LINE)
    assert card.fields == (("Summary", "U"), ("Scene", "S"), ("Speech", "P"), ("On screen", "—"))


def test_an_own_schema_is_shown_field_by_field() -> None:
    """Nested values are flattened into text, names are the schema's own."""
    (card,) = cards(replace(LINE, result={"score": {"home": 3, "away": 1}, "players": ["A", "B"], "out": None}))
    assert card.fields == (("score", "home: 3, away: 1"), ("players", "A, B"), ("out", "—"))
    (free,) = cards(replace(LINE, result={"text": "answer"}))
    assert free.fields == (("Answer", "answer"),)


def test_totals_count_every_line_and_time_only_good_answers() -> None:
    """A failure's time is no latency; no answers means no numbers, not zeros."""
    totals = total(
        cards(
            LINE,
            replace(LINE, clip="b", outcome="length", elapsed_ms=9000),
            replace(LINE, clip="c", warnings=("x: y",)),
        )
    )
    assert (totals.clips, totals.ok, totals.failed, totals.warned) == (3, 2, 1, 1)
    assert totals.outcomes == {"ok": 2, "length": 1} and totals.warnings == {"x": 1}
    assert (totals.latency_ms.count, totals.latency_ms.maximum) == (2, 100)
    assert (totals.prompt_tokens, totals.completion_tokens) == (1800, 80)
    none = total(cards(replace(LINE, outcome="connect_failed", usage=None, elapsed_ms=None, fps=None)))
    assert none.latency_ms.p50 is None and none.latency_ms.count == 0 and none.prompt_tokens is None
    assert none.rates == ("n/a",)


def test_strip_has_a_bar_for_every_clip_in_clip_order() -> None:
    """Also for a clip without a time; all inside the drawing."""
    made = cards(LINE, replace(LINE, clip="clips/0000.mp4", outcome="invalid_media", elapsed_ms=None))
    strip = latency_strip(made, p50=100.0, p90=None)
    assert strip is not None and [bar.kind for bar in strip.bars] == ["fail", "ok"]
    assert "no time" in strip.bars[0].title and "100 ms" in strip.bars[1].title
    for bar in strip.bars:
        assert (
            bar.x >= 0 and bar.x + bar.width <= STRIP_WIDTH and bar.y >= 0 and bar.y + bar.height <= STRIP_HEIGHT + 0.1
        )
    assert strip.width == STRIP_WIDTH + LABEL_WIDTH and [rule.label for rule in strip.rules] == ["p50 100 ms"]


def test_close_percentiles_keep_their_labels_apart() -> None:
    """Two names never lie on each other."""
    strip = latency_strip(cards(LINE), p50=99.0, p90=100.0)
    assert strip is not None
    low, high = strip.rules
    assert low.text_y - high.text_y >= 14


def test_nothing_to_draw_is_none() -> None:
    """No time, no strip; no pair of times, no race."""
    assert latency_strip(cards(replace(LINE, elapsed_ms=None)), p50=None, p90=None) is None
    assert race(None, 5) is None and race(5, 0) is None
    pair = race(1000, 250)
    assert pair is not None and (pair.sequential_percent, pair.batch_percent) == (100, 25)


def test_clips_are_found_where_they_are_now(tmp_path: Path) -> None:
    """As given, in a folder named by the user by as much of the path as fits, or beside the results."""
    clip = tmp_path / "moved/docu/bbb/0001.mp4"
    clip.parent.mkdir(parents=True)
    clip.touch()
    assert find_clip(str(clip), None, None) == clip
    assert find_clip("data/clips/docu/bbb/0001.mp4", tmp_path / "moved", None) == clip
    assert find_clip("/old/place/docu/bbb/0001.mp4", tmp_path / "moved", None) == clip
    assert find_clip("docu/bbb/0001.mp4", None, tmp_path / "moved") == clip
    assert find_clip("docu/bbb/0002.mp4", tmp_path / "moved", tmp_path) is None
