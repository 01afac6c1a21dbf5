"""cli.report and cli.compare on run folders: what is drawn, and what means nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.bench.run_folders import good, write_run

from vision_bench.cli.compare import command as compare
from vision_bench.cli.report import command as report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", [good(index, 100) for index in range(40)])


def test_a_run_folder_is_drawn_and_summarised_again(folder: Path) -> None:
    """Both files appear; --json tells where the page is and how large."""
    done = CliRunner().invoke(report, [str(folder), "--json"])
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    page = folder / "report.html"
    assert told == {"report": str(page), "steps": 1, "bytes": page.stat().st_size}
    assert json.loads((folder / "summary.json").read_bytes())["steps"][0]["requests"]["ok"] == 40


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--credit", "x"], "--credit means nothing to a run folder"),
        (["--extra", "a=b"], "--extra means nothing to a run folder"),
        (["--overlay"], "two run folders or more"),
        (["--overlay", "{run}", "--clips-dir", "{run}"], "--clips-dir means nothing to --overlay"),
        (["{run}"], "say --overlay"),
    ],
)
def test_what_means_nothing_is_refused(folder: Path, words: list[str], says: str) -> None:
    """Each with its option's name; nothing is drawn."""
    done = CliRunner().invoke(report, [str(folder), *(word.replace("{run}", str(folder)) for word in words)])
    assert done.exit_code == 2 and says in done.output
    assert not list(folder.glob("*.html"))


def test_a_comparison_names_its_verdicts(folder: Path) -> None:
    """A run against itself is equivalent in what the sample carries; the table says so, and the status is 0."""
    done = CliRunner().invoke(compare, [str(folder), str(folder), "--metric", "response_ms"])
    assert done.exit_code == 0 and "2 EQUIVALENT, 1 INCONCLUSIVE" in " ".join(done.stdout.split())
