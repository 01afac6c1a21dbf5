"""Tests against real vLLM. They run only when asked for: ``make test-vllm``, ``-m vllm`` or ``VISION_BENCH_VLLM=1``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator

import pytest
from tests.vllm.environment import VllmEnvironment, ensure
from tests.vllm.server import VllmServers


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known where pyproject.toml does not list it."""
    config.addinivalue_line("markers", "vllm: runs real vLLM; builds 3 GB outside the tree; run by `make test-vllm`")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs vLLM; leave it out, unsaid, unless it is asked for by name."""
    ours = [item for item in items if "vllm_environment" in getattr(item, "fixturenames", ())]
    for item in ours:
        item.add_marker(pytest.mark.vllm)
        # The first one may build the environment, and any may start a server.
        item.add_marker(pytest.mark.timeout(900))
    asked = os.environ.get("VISION_BENCH_VLLM") == "1" or re.search(r"(?<!not )\bvllm\b", config.option.markexpr or "")
    if not asked and ours:
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]


@pytest.fixture(scope="session")
def vllm_environment() -> VllmEnvironment:
    """vLLM on a CPU and its checkpoint, built if they are missing."""
    return ensure(lambda line: print(line, file=sys.__stderr__, flush=True))


@pytest.fixture(scope="session")
def vllm_server(vllm_environment: VllmEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServers]:
    """``vllm_server.get(*flags)`` is a running server with those flags; at most one runs at a time."""
    servers = VllmServers(vllm_environment, tmp_path_factory.mktemp("vllm"))
    yield servers
    servers.stop()
