"""report.compare_*: a comparison in a terminal and on a page says the same."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.bench.run_folders import good, write_run
from tests.unit.bench.test_compare import answers
from tests.unit.report.page_reader import Reader
from tests.unit.report.test_run_page import _short_script, figures  # noqa: F401 - a fixture

from vision_bench.bench.compare import CompareOptions, compare
from vision_bench.report.compare_page import write_compare_page
from vision_bench.report.compare_table import print_comparison
from vision_bench.report.compare_words import caveats

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("pair")
    a, b = write_run(folder / "a", answers()), write_run(folder / "b", answers(1.4, seed=2))
    return compare(CompareOptions(a, b, metrics=["response_ms", "tpot_ms"], resamples=200))


def test_the_page_has_every_row_and_a_forest(found: Any, tmp_path: Path) -> None:
    """Ratios with intervals, one trace a verdict; margin, family and resamples named; caveats first."""
    write_compare_page(tmp_path / "c.html", found, made_at=NOW)
    reader = Reader(page := (tmp_path / "c.html").read_text("utf-8"))
    (forest,) = figures(reader)
    assert {trace["name"]: len(trace["x"]) for trace in forest["data"]} == {"SLOWER": 2, "EQUIVALENT": 2}
    for words in ("Equivalent is within 5.0%", "4 tests", "200 resamples", "one after the other", "120 samples, 368"):
        assert words in reader.text, words
    assert page.index("How to read this") < page.index("rate 10")


def test_the_table_says_the_same(found: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """In a terminal of any width, also a name in square brackets."""
    print_comparison(found | {"a": found["a"] | {"model": "[bold]"}})
    printed = capsys.readouterr().out
    assert printed.count("SLOWER") == 3 and printed.count("EQUIVALENT") == 3  # once in the line above the table
    assert "[bold]" in printed and "NO DIFFERENCE SHOWN" in printed


def test_caveats_name_what_weakens_a_comparison(found: Any, tmp_path: Path) -> None:
    """Not interleaved, forced, not paired, not stable, cut off; an interleaved pair of stable runs has none."""

    def pair(manifest: Any) -> None:
        manifest["arms"] = "1"

    a, b = (write_run(tmp_path / name, answers(), change=pair) for name in "ab")
    clean = compare(CompareOptions(a, b, metrics=["response_ms"], resamples=100))
    assert caveats(clean) == []
    doubtful = clean | {"differences": ["seed: 0 against 1"], "is_interleaved": False}
    doubtful["rows"] = [row | {"is_paired": False} for row in clean["rows"]]
    doubtful["b"] = clean["b"] | {"steps": {"rate 10": "SATURATED"}, "is_complete": False}
    said = " ".join(caveats(doubtful))
    for words in ("seed: 0", "one after the other", "not the same ones", "rate 10 SATURATED", "cut off"):
        assert words in said, words


def test_an_infinite_ratio_is_in_the_table_and_not_in_the_figure(tmp_path: Path) -> None:
    """Half of B failed: no ratio to draw."""
    from tests.unit.bench.run_folders import bad

    a = write_run(tmp_path / "a", [good(index, 100 + index % 7) for index in range(120)])
    b = write_run(tmp_path / "b", [bad(index) if index % 2 else good(index, 100) for index in range(120)])
    found = compare(CompareOptions(a, b, metrics=["response_ms"], resamples=100))
    write_compare_page(tmp_path / "c.html", found, made_at=NOW)
    reader = Reader((tmp_path / "c.html").read_text("utf-8"))
    assert "infinite in B alone" in reader.text and figures(reader) == []
