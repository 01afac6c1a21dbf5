"""Which Python the stock processor is taken from."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from vision_bench.bench.preprocess import interpreters
from vision_bench.bench.preprocess.interpreters import VARIABLE, stock_python, worker_environ
from vision_bench.errors import MissingTool


@pytest.fixture(autouse=True)
def _without_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)


def test_none_says_how_to_make_one(tmp_path: Path) -> None:
    """The command, the variable, and what can be done without; nothing else is passed off as stock."""
    with pytest.raises(MissingTool) as told:
        stock_python({"XDG_CACHE_HOME": str(tmp_path)})
    assert "python tests/vllm/environment.py" in str(told.value)
    assert VARIABLE in str(told.value) and 'arm = "ours"' in str(told.value)


def test_one_that_is_named_wins_and_must_be_there(tmp_path: Path) -> None:
    """A wrong name is told, not passed over."""
    mine = tmp_path / "python"
    mine.touch()
    assert stock_python({VARIABLE: str(mine), "XDG_CACHE_HOME": str(tmp_path)}) == mine
    with pytest.raises(MissingTool, match="which is not there"):
        stock_python({VARIABLE: str(tmp_path / "other")})


def test_a_finished_environment_of_the_cache_is_found_and_a_half_made_one_is_not(tmp_path: Path) -> None:
    """The stamp tells; the variable that moves the cache is kept to."""
    for name in ("vllm-aaa", "vllm-bbb"):
        (tmp_path / name).mkdir()
    (tmp_path / "vllm-aaa" / ".complete").touch()
    assert stock_python({"VISION_BENCH_VLLM_DIR": str(tmp_path)}) == tmp_path / "vllm-aaa" / "bin" / "python"


def test_a_worker_inherits_nothing_of_this_python() -> None:
    """PYTHONPATH of ours would put our packages over those that it is there for."""
    found = worker_environ({"PYTHONPATH": "/ours", "VIRTUAL_ENV": "/ours", "HOME": "/home"}, 2)
    assert "PYTHONPATH" not in found and "VIRTUAL_ENV" not in found
    assert (found["HOME"], found["OMP_NUM_THREADS"], found["HF_HUB_OFFLINE"]) == ("/home", "2", "1")


def test_the_command_names_this_package() -> None:
    """The folder that holds errors.py, whichever way it was installed."""
    command = interpreters.worker_command(Path("python"))
    assert (Path(command[-1]) / "errors.py").is_file()
