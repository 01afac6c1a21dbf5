"""The workloads that come with the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from vision_bench.bench.chat.workload import ChatWorkload, prepare
from vision_bench.bench.preprocess.workload import PreprocessWorkload
from vision_bench.bench.realtime import keys, specification
from vision_bench.bench.workload import Common, read_workload

FOLDER = Path(__file__).parents[3] / "workloads"
FILES = sorted(FOLDER.glob("*.toml"))
KINDS: dict[str, type[Common]] = {
    "chat": ChatWorkload,
    "preprocess": PreprocessWorkload,
    "realtime": keys.RealtimeWorkload,
}


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_every_example_is_a_workload_of_its_name(path: Path) -> None:
    """Its values are accepted, and a result names the file."""
    file = read_workload(path)
    assert file.checked(KINDS[file.kind]).name == path.stem


def test_the_smallest_example_needs_no_other_file() -> None:
    """It can be sent from a fresh clone."""
    assert prepare(read_workload(FOLDER / "chat_text.toml"), can_stream=True, salt="0").files == {}


@pytest.mark.parametrize("name", ["lingbot_forward", "lingbot_live_camera"])
def test_the_realtime_examples_are_sent_as_they_are(name: str) -> None:
    """With the picture that lies beside them, and nothing to warn of."""
    prepared = specification.prepare(read_workload(FOLDER / f"{name}.toml"), keys.RealtimeFlags())
    assert prepared.workload.num_frames == 477
    assert prepared.warnings == ()
    assert "picture" in prepared.files
