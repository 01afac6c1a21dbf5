"""``vision-bench broadcast`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from vision_bench.cli.broadcast import command
from vision_bench.errors import MissingExtra
from vision_bench.media.broadcast.fonts import find_font


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """6 s of baseball, made by the command, as its JSON object tells."""
    try:
        find_font()
    except MissingExtra as problem:
        pytest.skip(str(problem))
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
