"""report.run_page: a run folder as a page, from its records alone."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.bench.run_folders import bad, good, write_run
from tests.unit.report.page_reader import Reader

from vision_bench.bench.summary import write_summary
from vision_bench.errors import InvalidSettings
from vision_bench.report.run_page import write_run_page

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOSTILE = "</script><img src=x onerror=alert(1)>'\"&"


@pytest.fixture(autouse=True)
def _short_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five megabytes in every page would be most of what these tests do; test_shell has the real script."""
    monkeypatch.setattr("vision_bench.report.shell.plotly_script", lambda: "plotly.js v0")


def page_of(folder: Path, **options: Any) -> Reader:
    path = write_run_page(folder, write_summary(folder), made_at=NOW, **options)
    return Reader(path.read_text("utf-8"))


def figures(reader: Reader) -> list[Any]:
    return [json.loads(script) for script in reader.scripts if script.startswith('{"data"')]


def titles(reader: Reader) -> list[str]:
    return [figure["layout"].get("title", {}).get("text", "timeline") for figure in figures(reader)]


def test_everything_is_on_the_page(tmp_path: Path) -> None:
    """Two steps of 40 answers and two failures: verdicts with reasons, all figures, the worst, what a repeat needs."""
    steps = [[bad(0), *(good(index, 90 + index) for index in range(1, 40))] for _ in range(2)]
    reader = page_of(write_run(tmp_path / "run", *steps))
    assert titles(reader) == [
        "First token, from the due time",
        "Whole answer, from the due time",
        "Throughput",
        "First token, from the due time",
        "First token, from the first byte sent",
        "Gaps between content events",
        "Whole answer, from the due time",
        "rate 10 (UNDETERMINED)",
        "rate 20 (UNDETERMINED)",
        "timeline",
    ]
    for words in (
        "1 of 40 failed",
        "model qwen",
        "media video, 2 fps",
        "region here",
        "arrivals constant",
        "constant, 4 s, 1 in flight",
        "40 samples, 368 needed",
        "unknown: the server does not tell",
        "HTTP 500: broken",
        "answer 39",
        "workload fingerprint",
    ):
        assert words in reader.text, words


def test_the_page_is_made_from_records_alone(tmp_path: Path) -> None:
    """Without summary.json, and again over what was there: the same page."""
    folder = write_run(tmp_path / "run", [good(index, 100) for index in range(30)])
    first = page_of(folder).text
    (folder / "summary.json").unlink()
    assert page_of(folder).text == first
    assert not list(folder.glob(".*"))


def test_a_run_that_was_cut_off_has_a_page(tmp_path: Path) -> None:
    """It says so; a run without a record, and one of a step without any answer, have one too."""
    cut = write_run(tmp_path / "cut", [good(0, 100)], [good(0, 100)], due=30, is_cut=True)
    assert "The run was cut off" in page_of(cut).text
    assert "0 samples" in page_of(write_run(tmp_path / "none", [], due=5)).text
    reader = page_of(write_run(tmp_path / "bad", [bad(index) for index in range(30)]))
    assert "HTTP 500: broken" in reader.text and "30 of 30 failed" in reader.text


def test_an_answer_in_one_piece_has_no_first_token_on_its_page(tmp_path: Path) -> None:
    """No figure of TTFT or gaps; the whole answer has its own."""
    records = [good(index, 100, k_ns=[], is_streamed=False) for index in range(30)]
    folder = write_run(tmp_path / "run", records, change=lambda manifest: manifest["workload"].update(streams=False))
    found = titles(page_of(folder))
    assert "Whole answer, from the due time" in found
    assert not any("First token" in title or "Gaps" in title for title in found)


def test_a_closed_loop_is_drawn_against_its_lanes(tmp_path: Path) -> None:
    """There is no offered rate, hence no figure of what was achieved of it."""

    def closed(manifest: Any) -> None:
        manifest["plan"][0] |= {
            "name": "concurrency 2", "load": "closed", "concurrency": 2, "rate": None, "offered_rate": None,
            "arrivals": None, "schedule_sha256": None,
        }  # fmt: skip

    reader = page_of(write_run(tmp_path / "run", [good(index, 100) for index in range(30)], change=closed))
    assert "Throughput" not in titles(reader) and "closed loop" in reader.text
    assert figures(reader)[0]["data"][0]["x"] == [2]


def test_a_load_of_another_kind_is_drawn_against_its_rate(tmp_path: Path) -> None:
    """Live cameras offer a rate, too."""
    folder = write_run(
        tmp_path / "run",
        [good(index, 100) for index in range(30)],
        change=lambda manifest: manifest["plan"][0].update(load="live", concurrency=None),
    )
    assert figures(page_of(folder))[0]["data"][0]["x"] == [10.0]


def test_nothing_of_a_run_becomes_markup(tmp_path: Path) -> None:
    """Names, texts, failures, models and addresses as a hostile server or file would have them."""

    def filled(word: str, folder: Path) -> Reader:
        def change(manifest: Any) -> None:
            manifest["workload"] |= {"name": word, "url": word}
            manifest["labels"] |= {"model": word, "media": word, "region": word}
            manifest["plan"][0]["name"] = word
            manifest["server"] = {"models": [word]}

        records = [bad(0, word, item=word), *(good(index, 100, item=word, text=word) for index in range(1, 30))]
        return page_of(write_run(folder, records, change=change))

    hostile, harmless = filled(HOSTILE, tmp_path / "a"), filled("harmless", tmp_path / "b")
    assert hostile.tags == harmless.tags
    assert HOSTILE in hostile.text


def test_a_large_run_is_a_small_page(tmp_path: Path) -> None:
    """Three thousand requests and sixty: the page grows by under 0.1 MB, and says what it left out."""
    small = write_run_page(*_summed(write_run(tmp_path / "s", [good(index, 100) for index in range(60)])), made_at=NOW)
    records = [good(index, 100 + index % 977) for index in range(3000)]
    large = write_run_page(*_summed(write_run(tmp_path / "l", records)), made_at=NOW)
    assert large.stat().st_size - small.stat().st_size < 100_000
    assert "known to 1 % each, at 300 points at most" in large.read_text("utf-8")


def _summed(folder: Path) -> tuple[Path, Any]:
    return folder, write_summary(folder)


def test_many_steps_are_thinned_and_the_page_says_so(tmp_path: Path) -> None:
    """Of twelve steps, eight have curves: the first and the last among them."""
    folder = write_run(tmp_path / "run", *([[good(index, 100) for index in range(8)]] * 12))
    reader = page_of(folder)
    (curves,) = [f for f in figures(reader) if f["layout"].get("title", {}).get("text", "").startswith("Gaps")]
    names = [trace["name"] for trace in curves["data"]]
    assert len(names) == 8 and (names[0], names[-1]) == ("rate 10, constant", "rate 120, constant")
    assert "8 of 12 steps are drawn" in reader.text


def test_what_a_run_was_made_to_find_is_said_first(tmp_path: Path) -> None:
    """The knee and why, the cameras that were sustained, the client's own error, what production brings."""
    folder = write_run(tmp_path / "run", [good(index, 100) for index in range(30)])
    error = {"p50": 0.5, "p99": None}
    summary = write_summary(folder) | {
        "sweep": {"rate": 12.0, "reason": "16/s is SATURATED", "ended_because": "the bracket is narrow"},
        "live": {"cameras": None},
        "calibration": {"rate": 50.0, "ttft_ms": error, "tpot_ms": error, "e2e_ms": error, "verdict": "STABLE",
                        "ok": 9, "requests": 9},
        "expected": {"rate": 8.0, "concurrency": 2, "is_reached": True, "is_stable_there": False},
    }  # fmt: skip
    text = Reader(write_run_page(folder, summary, made_at=NOW).read_text("utf-8")).text
    for words in (
        "Knee: 12/s. 16/s is SATURATED. Ended because the bracket is narrow.",
        "Sustained: none live cameras.",
        "Calibration at 50/s, reported less true, p50 / p99: TTFT +0.50 / - ms",
        "Production brings 8 requests/s and 2 at once: reached, not STABLE there.",
    ):
        assert words in text, words


def test_accuracy_stands_beside_speed(tmp_path: Path) -> None:
    """Where answers were scored: the share with its interval, and each fact."""
    folder = write_run(tmp_path / "run", [good(index, 100) for index in range(30)])
    summary = write_summary(folder)
    counts = {"right": 20, "count": 30, "share": 0.667, "interval": [0.4, 0.8]}
    fact = {"scorer": "exact", **counts, "mean_value": 0.7}
    summary["steps"][0]["accuracy"] = {**counts, "clips": 3, "answers": counts, "by_fact": {"score": fact}}
    text = Reader(write_run_page(folder, summary, made_at=NOW).read_text("utf-8")).text
    assert "Correctness" in text and "66.7% 40.0% to 80.0%" in text and "20 of 30" in text


def test_a_kind_without_figures_of_its_own_has_verdicts(tmp_path: Path) -> None:
    """And what a repeat needs; no script where there is no figure."""
    folder = write_run(tmp_path / "run", [good(index, 100) for index in range(30)])
    summary = write_summary(folder) | {"kind": "film"}
    html = write_run_page(folder, summary, made_at=NOW).read_text("utf-8")
    assert "Verdicts" in html and "plotly.js v" not in html


def test_clips_that_are_there_are_shown(tmp_path: Path) -> None:
    """A picture by its name, made small; a name without a file has a card without one."""
    from PIL import Image

    clips = tmp_path / "clips"
    clips.mkdir()
    Image.new("RGB", (640, 360), "navy").save(clips / "a.png")
    records = [good(0, 100, item="a.png"), good(1, 100, item="gone.png")]
    html = write_run_page(*_summed(write_run(tmp_path / "run", records)), made_at=NOW, clips=clips).read_text("utf-8")
    assert len(re.findall(r"<img src=\"data:image/jpeg;base64", html)) == 1


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """A folder stands in its place."""
    folder = write_run(tmp_path / "run", [good(0, 100)])
    (folder / "report.html").mkdir()
    with pytest.raises(InvalidSettings, match=r"report\.html"):
        page_of(folder)
