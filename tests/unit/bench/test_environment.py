"""What a repeat of a run needs to know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vision_bench.bench import environment


def test_the_machine_is_described_without_its_owner() -> None:
    """Versions and sizes, as JSON; no home, no user, no path."""
    text = json.dumps(environment.describe())
    found = json.loads(text)
    assert found["python"].count(".") == 2 and found["processors"] >= 1
    assert found["packages"]["msgspec"]
    assert str(Path.home()) not in text and "/" not in text.replace("\\/", "")


def test_what_cannot_be_learnt_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No git, no repository, no GPU tool: None, and no error."""
    assert environment.git_revision(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert environment.git_revision(tmp_path) is None
    assert environment.gpus() is None
