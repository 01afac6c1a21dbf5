"""``vision-bench broadcast`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from vision_bench.cli.broadcast import command
from vision_bench.errors import InvalidRequest


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """6 s of baseball, made by the command, as its JSON object tells."""
    folder = tmp_path_factory.mktemp("command")
    words = ["make", "--genre", "baseball", "--seconds", "6", "--out", str(folder), "--json"]
    result = CliRunner().invoke(command, words, catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)["made"][0]


def test_make_tells_what_it_made(made: dict[str, str]) -> None:
    """One JSON object on stdout names film, labels, frames and bytes; both files are there."""
    assert Path(made["film"]).stat().st_size == made["size_bytes"]
    assert Path(made["labels"]).is_file()
    assert made["frames"] == 180


def test_check_finds_no_fault_in_what_was_made(made: dict[str, str]) -> None:
    """The film, checked against its labels, ends with 0 and an empty list of faults."""
    words = ["check", made["film"], made["labels"], "--json"]
    result = CliRunner().invoke(command, words, standalone_mode=False, catch_exceptions=False)
    assert result.return_value == 0
    assert json.loads(result.stdout)["faults"] == []


def test_check_says_no_with_5(made: dict[str, str], tmp_path: Path) -> None:
    """A file that is not what the labels promise is a gate's no, not a crash."""
    labels = json.loads(Path(made["labels"]).read_text(encoding="utf-8"))
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({**labels, "frames": 999}), encoding="utf-8")
    words = ["check", made["film"], str(wrong)]
    result = CliRunner().invoke(command, words, standalone_mode=False, catch_exceptions=False)
    assert result.return_value == 5
    assert "holds 180 frames, not 999" in result.stdout


def test_an_unknown_genre_is_a_usage_error() -> None:
    """The seven and `all` are listed."""
    result = CliRunner().invoke(command, ["make", "--genre", "opera", "--seconds", "6", "--out", "x"])
    assert result.exit_code == 2
    assert "hist_drama" in result.stderr
    assert "all" in result.stderr


def test_score_holds_an_analysis_to_the_labels(made: dict[str, str], tmp_path: Path) -> None:
    """A results file that says nothing of the one window scores 0 in every row; the card says one of one answered."""
    results = tmp_path / "results.ndjson"
    results.write_text('{"clip": "x/0001_0000-0006.mp4", "outcome": "ok", "result": {"summary": "?"}}\n', "utf-8")
    words = ["score", made["labels"], str(results), "--json"]
    result = CliRunner().invoke(command, words, catch_exceptions=False)
    card = json.loads(result.stdout)
    assert (card["windows"], card["answered"]) == (1, 1)
    assert card["rows"]
    assert {row["mean"] for row in card["rows"] if row["method"] == "contains"} == {0.0}


def test_score_names_a_file_that_is_no_analysis(made: dict[str, str], tmp_path: Path) -> None:
    """A broken line ends with the file's name and what to give instead."""
    results = tmp_path / "results.ndjson"
    results.write_text("not json\n", "utf-8")
    with pytest.raises(InvalidRequest, match=r"results\.ndjson.*analyze"):
        CliRunner().invoke(command, ["score", made["labels"], str(results)], catch_exceptions=False)
