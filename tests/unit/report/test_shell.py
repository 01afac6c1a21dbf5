"""report.shell: one page from sections, whole, offline, and nothing in it that was not written as text."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime

import pytest
from tests.unit.report.page_reader import Reader

from vision_bench.report.figures import line
from vision_bench.report.section import Card, Figure, Section, Table, Tile
from vision_bench.report.shell import render_page, shown

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOSTILE = "</script><img src=x onerror=alert(1)>'\"&"


def page(*sections: Section, **settings: object) -> str:
    return render_page("Run", sections, made_at=NOW, **settings)  # type: ignore[arg-type]


def figure(**layout: object) -> Figure:
    return Figure([line("a", [1, 2], [1.0, 2.0], colour="var(--c1)")], layout, "rises")


def test_plotly_stands_in_the_page_once_and_only_where_a_figure_is() -> None:
    """Two figures in two sections: one script of it; none: a page of a few kilobytes."""
    with_two = page(Section("A", figures=[figure()]), Section("B", figures=[figure()]))
    assert with_two.count("plotly.js v") == 1
    assert 4_000_000 < len(with_two) < 6_000_000
    assert len(page(Section("A"))) < 40_000


def test_no_address_but_in_the_page() -> None:
    """And a policy that forbids every other."""
    html = page(Section("A", figures=[figure()], cards=[Card("c", "ok", "x", picture="data:image/jpeg;base64,AA")]))
    assert all(address.startswith(("#", "data:")) for address in Reader(html).addresses)
    assert "default-src 'none'" in html


def test_nothing_from_outside_becomes_markup() -> None:
    """In every place that takes text, figures included: as many elements as with a harmless word."""

    def filled(word: str) -> Reader:
        section = Section(
            word,
            text=word,
            figures=[Figure([line(word, [word], [1.0], colour="var(--c1)", hover=[word])], {"title": word}, word)],
            tables=[Table([word], [[word]], word)],
            cards=[Card(word, word, word, [(word, word)])],
            notes=[word],
        )
        return Reader(
            render_page(word, [section] * 3, made_at=NOW, facts=[word], tiles=[Tile(word, word)]),
        )

    hostile, harmless = filled(HOSTILE), filled("harmless")
    assert hostile.tags == harmless.tags
    assert HOSTILE in hostile.text
    told = [json.loads(script) for script in hostile.scripts if script.startswith("{")]
    assert [each["data"][0]["name"] for each in told] == [HOSTILE] * 3


def test_a_figure_is_strict_json() -> None:
    """What is infinite or no number is a gap; six digits are kept."""
    made = Figure([line("a", [1, 2, 3], [math.inf, math.nan, 1 / 3], colour="var(--c1)")], {}, "a")
    (script,) = [text for text in Reader(page(Section("A", figures=[made]))).scripts if text.startswith("{")]
    assert json.loads(script)["data"][0]["y"] == [None, None, 0.333333]


def test_a_page_reads_without_its_pictures() -> None:
    """Each figure says what it shows, for a screen reader and below it; tables have heads; scrolling takes keys."""
    html = page(Section("A", figures=[figure()], tables=[Table(["n"], [[1]])], is_folded=True))
    assert html.count("rises") == 2 and 'aria-label="rises"' in html and 'scope="col"' in html
    assert re.search(r'class="scroll" tabindex="0"', html)
    assert "<details><summary>" in html


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (0, "0"),
        (1234567, "1,234,567"),
        (0.0123456, "0.012"),
        (1.23456, "1.23"),
        (123.456, "123.5"),
        (12345.6, "12,346"),
        (True, "True"),
        ("x", "x"),
        (math.inf, "inf"),
    ],
)
def test_numbers_are_shown_with_the_digits_they_need(value: object, text: str) -> None:
    """Nothing is n/a, never 0."""
    assert shown(value) == text
