"""report.page: one page, safe and whole."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.report.lines import GOOD, write_results
from tests.unit.report.page_reader import Reader

from vision_bench.client.results import ResultLine, Results
from vision_bench.errors import InvalidRequest, InvalidSettings
from vision_bench.report.page import Run, load_run, render
from vision_bench.report.shell import write_page

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def page(*lines: ResultLine, **settings: object) -> str:
    extra = {name: settings.pop(name) for name in ("api_check", "batch", "extras") if name in settings}
    run = Run("demo", Path(), Results(lines or (GOOD,)), **extra)  # type: ignore[arg-type]
    return render(run, made_at=NOW, with_media=False, **settings)  # type: ignore[arg-type]


def test_the_page_asks_no_network_for_anything() -> None:
    """No address but places in the page itself; a policy that forbids the rest."""
    reader = Reader(page())
    assert all(address.startswith(("#", "data:")) for address in reader.addresses)
    assert "link" not in reader.tags and "default-src 'none'" in page()
    assert not re.search(r"https?://|@import|url\((?!data:)", page().replace("http-equiv", ""))


@pytest.mark.parametrize("field", ["clip", "clip_id", "outcome", "error", "raw", "model", "request_id"])
def test_text_of_models_and_files_is_shown_and_never_run(field: str) -> None:
    """A clip named like a tag, an answer that holds a script."""
    attack = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'"
    html = page(replace(GOOD, **({"outcome": "http_error"} | {field: attack})))
    tags = Reader(html).tags
    assert tags.count("script") == 1 and "img" not in tags
    assert "&lt;script&gt;" in html


def test_answers_warnings_and_credits_are_escaped_too() -> None:
    """Everything that comes from outside."""
    attack = "<img src=x onerror=alert(1)>"
    html = page(
        replace(GOOD, result={"scene": attack, attack: attack}, warnings=(attack,)),
        credits=[attack],
        title=attack,
        api_check={
            "rows": [dict.fromkeys(("item", "route", "verification", "key_result", "verdict", "reason"), attack)]
        },
        batch={"lines": [{"id": attack, "status": 500, "elapsed_ms": 1}], "clips": 1, "ratio": None},
        extras={attack: {"a": attack}},
    )
    assert "img" not in Reader(html).tags


def test_every_bar_leads_to_its_card() -> None:
    """Links of the strip and ids of the cards are the same set."""
    lines = [replace(GOOD, clip=f"clips/{n:04d}.mp4", clip_id=f"{n:04d} 한글", request_id=f"f-1-{n}") for n in range(5)]
    reader = Reader(page(*lines))
    links = {address[1:] for address in reader.addresses if address.startswith("#c-")}
    assert len(links) == 5 and links <= set(reader.ids) and len(set(reader.ids)) == len(reader.ids)


def test_counts_and_percentiles_stand_with_their_samples() -> None:
    """And say n/a when there are none."""
    assert "p50 of 1 samples" in Reader(page()).text
    text = Reader(page(replace(GOOD, outcome="http_error", result=None, elapsed_ms=None, usage=None))).text
    assert "n/a p50 of 0 samples" in text and " 0 ms" not in text


def test_failures_stand_before_good_answers() -> None:
    """With their reason, and the text as it came."""
    bad = replace(
        GOOD, clip="z.mp4", clip_id="z", outcome="length", result=None, error="cut by max_tokens", raw='{"scene'
    )
    text = Reader(page(GOOD, bad)).text
    assert text.index("cut by max_tokens") < text.index("투수가 던진다.") and '{"scene' in text


def test_experiments_beside_the_results_become_sections(tmp_path: Path) -> None:
    """A run folder is read whole; a results file alone."""
    write_results(tmp_path / "results.ndjson", [GOOD])
    row = {"item": "Batch", "route": "POST /chat/batch", "key_result": "6/6", "verdict": "PASS", "reason": ""}
    (tmp_path / "api_check.json").write_text(json.dumps({"rows": [row]}))
    batch = {
        "clips": 12,
        "sequential_ms": 3000,
        "batch_ms": 1000,
        "ratio": 3.0,
        "x_batch_total": 12,
        "order_differs": True,
    }
    lines = [{"id": "0001.mp4", "status": 200, "elapsed_ms": 250, "error": None}]
    (tmp_path / "batch_throughput.json").write_text(json.dumps(batch | {"lines": lines}))
    text = Reader(render(load_run(tmp_path), made_at=NOW, with_media=False)).text
    assert "Route check" in text and "3.00×" in text and "differs from input order" in text and "0001.mp4" in text
    text = Reader(render(load_run(tmp_path / "results.ndjson"), made_at=NOW, with_media=False)).text
    assert "Route check" not in text


def test_extra_files_are_sections_by_name(tmp_path: Path) -> None:
    """Flat objects as a table, anything else as it is."""
    write_results(tmp_path / "results.ndjson", [GOOD])
    (tmp_path / "s.json").write_text('{"accuracy": 0.5, "none": null}')
    (tmp_path / "n.json").write_text('[{"a": 1}]')
    run = load_run(tmp_path, extras={"Scores": tmp_path / "s.json", "List": tmp_path / "n.json"})
    text = Reader(render(run, made_at=NOW, with_media=False)).text
    assert "Scores accuracy 0.5 none n/a" in text and "List" in text


def test_what_is_no_run_is_refused_with_the_reason(tmp_path: Path) -> None:
    """No file, an empty one, an experiment's file that is damaged."""
    with pytest.raises(InvalidRequest, match="no results file"):
        load_run(tmp_path)
    (tmp_path / "results.ndjson").write_text("garbage\n")
    with pytest.raises(InvalidRequest, match="1 lines cannot be read"):
        load_run(tmp_path)
    (tmp_path / "results.ndjson").unlink()  # a run does not write over a file that is none of its own
    write_results(tmp_path / "results.ndjson", [GOOD])
    (tmp_path / "api_check.json").write_text("{")
    with pytest.raises(InvalidRequest, match=r"api_check\.json"):
        load_run(tmp_path)


def test_page_replaces_the_old_one_whole(tmp_path: Path) -> None:
    """Also when a model sent half of an emoji."""
    target = tmp_path / "new" / "report.html"
    write_page(target, page(replace(GOOD, result={"scene": "\ud83d"})))
    assert target.read_text("utf-8").rstrip().endswith("</html>")
    assert [file.name for file in target.parent.iterdir()] == ["report.html"]


def test_a_line_read_back_draws_the_same_page(tmp_path: Path) -> None:
    """The file holds all that the page needs."""
    write_results(tmp_path / "results.ndjson", [GOOD])
    assert asdict(load_run(tmp_path).results.lines[0]) == asdict(GOOD)


@pytest.mark.parametrize("place", ["file/report.html", "folder", "x" * 300])
def test_a_page_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path, place: str) -> None:
    """And nothing half written stays."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidSettings, match=r"cannot write page .*--out"):
        write_page(tmp_path / place, "<p>")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.parametrize(
    "files",
    [
        {"batch": {"sequential_ms": "slow", "batch_ms": 1}},
        {"batch": {"ratio": "x"}},
        {"batch": {"ratio": 1, "lines": [5]}},
        {"api_check": {"rows": 5}},
        {"api_check": {"rows": [{}]}},
    ],
)
def test_experiments_of_another_shape_are_named(files: dict[str, object]) -> None:
    """One clear error, not a traceback of the template."""
    with pytest.raises(InvalidRequest, match="run the experiment again"):
        page(**files)


def test_lines_of_other_types_are_counted_on_the_page(tmp_path: Path) -> None:
    """They are left out, and the page says so; a clip's odd name is only a card without a picture."""
    odd = [{"usage": "x"}, {"model": ["a"]}, {"elapsed_ms": "fast"}, {"warnings": 5}, {"result": "str"}]
    records = [asdict(GOOD) | change for change in [*odd, {"clip": "x" * 5000}, {"clip": "\0"}]]
    (tmp_path / "results.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
    html = render(load_run(tmp_path), made_at=NOW)
    assert "5 lines of the results file could not be read" in html and html.count("<article") == 2
