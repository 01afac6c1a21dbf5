"""The workloads that come with the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from vision_bench.bench.chat.workload import ChatWorkload, prepare
from vision_bench.bench.workload import read_workload

FOLDER = Path(__file__).parents[3] / "workloads"
FILES = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_every_example_is_a_workload_of_its_name(path: Path) -> None:
    """Its values are accepted, and a result names the file."""
    assert read_workload(path).checked(ChatWorkload).name == path.stem


def test_the_smallest_example_needs_no_other_file() -> None:
    """It can be sent from a fresh clone."""
    assert prepare(read_workload(FOLDER / "chat_text.toml"), can_stream=True, salt="0").files == {}
