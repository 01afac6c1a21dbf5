"""Which versions are trusted."""

from __future__ import annotations

import pytest

from vision_bench.preprocess.plugins.tested import TESTED, reason_to_refuse

TRIED = {name: f"{lines[-1]}.4" for name, lines in TESTED.items()}


def test_any_patch_release_and_build_of_a_line_that_was_tried_is_trusted() -> None:
    """5.19.x and 2.13.x+cpu are 5.19 and 2.13."""
    assert reason_to_refuse(TRIED) is None
    assert reason_to_refuse({**TRIED, "torch": TRIED["torch"] + "+cpu"}) is None


@pytest.mark.parametrize("name", list(TESTED))
@pytest.mark.parametrize("version", ["1.0.0", "5.190.0", "2.130.1", "0.281", "missing", ""])
def test_any_other_is_refused_by_name_with_what_to_do(name: str, version: str) -> None:
    """A line is not a prefix of the text; what is missing is refused too."""
    reason = reason_to_refuse({**TRIED, name: version})
    assert reason is not None
    assert name in reason
    assert version in reason
    assert "vision-bench equivalence" in reason


def test_a_name_that_nobody_gave_a_version_of_is_refused() -> None:
    """No version is no reason to trust."""
    assert reason_to_refuse({}) is not None
