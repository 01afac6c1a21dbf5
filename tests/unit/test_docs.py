"""What the documents promise exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted(
    page
    for folder in (".", "docs", "docs/decisions", "experiments", "benchmarks")
    for page in (ROOT / folder).glob("*.md" if folder in {".", "docs", "docs/decisions"} else "*/*.md")
)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
COMMAND = re.compile(r"vision-bench ([a-z]+)\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    """A link to a file or folder of the repository resolves from where it stands."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_was_left_half_written(page: Path) -> None:
    """No placeholder, no note to oneself."""
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"[A-Z]+_PLACEHOLDER|RESULTS_[A-Z]+|TODO|TBD|FIXME|XXX", text) == []


def test_the_readme_names_only_verbs_that_exist() -> None:
    """Every `vision-bench VERB` in the README and the documents is in the table of verbs."""
    from vision_bench.cli.main import VERBS

    named = {verb for page in PAGES for verb in COMMAND.findall(page.read_text(encoding="utf-8"))}
    assert {"analyze", "prepare", "serve"} <= named
    assert named - set(VERBS) <= {"is", "and", "needs", "made", "prepare"}


def test_the_readme_is_short_and_starts_with_the_two_commands() -> None:
    """About 150 lines; the first code block is `make demo` and `make test`."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 170
    first = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert first is not None
    assert [line.split("#")[0].strip() for line in first[1].splitlines()] == ["make demo", "make test"]


def test_the_tests_that_the_threat_model_names_exist() -> None:
    """Each `unit/...py` in docs/security.md; a bare `test_...py` stands behind one of its folder."""
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:unit|integration|property)/[\w/]+\.py|test_\w+\.py)`", text)
    assert len(named) > 20
    folder = ""
    for name in named:
        folder = name.rpartition("/")[0] or folder
        assert (ROOT / "tests" / folder / name.rpartition("/")[2]).is_file(), name


def test_every_known_fault_has_a_test_that_exists() -> None:
    """docs/known-faults.md: S1 to S11 and B1 to B11, each with the function of a file below tests/."""
    rows = [line.split("|") for line in (ROOT / "docs" / "known-faults.md").read_text("utf-8").splitlines()]
    tests = {
        row[1].strip(): row[5].strip(" `") for row in rows if len(row) == 7 and re.match(r"[SB]\d", row[1].strip())
    }
    assert set(tests) == {f"{kind}{number}" for kind in "SB" for number in range(1, 12)}
    for case, named in tests.items():
        file, _, function = named.partition("::")
        assert f"def {function}(" in (ROOT / "tests" / file).read_text("utf-8"), case
