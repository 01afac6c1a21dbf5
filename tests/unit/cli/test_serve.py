"""``vision-bench serve``: what its options mean to the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from vision_bench.cli.serve import command
from vision_bench.errors import InvalidSettings
from vision_bench.gateway import serving


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Any, str, int]]:
    """What would have been served: (application, host, port)."""
    calls: list[tuple[Any, str, int]] = []
    monkeypatch.chdir(tmp_path)
    for name in ("VLLM_BASE_URL", "VLLM_CONCURRENCY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(serving, "serve", lambda app, *, host, port: calls.append((app, host, port)))
    return calls


def test_the_defaults_are_loopback_and_8001(served: list[tuple[Any, str, int]]) -> None:
    """Nobody else reaches it unless asked to."""
    done = CliRunner().invoke(command, ["--upstream", "http://x/v1"], standalone_mode=False)
    assert done.exception is None
    assert [call[1:] for call in served] == [("127.0.0.1", 8001)]


def test_options_win_over_the_environment(served: list[tuple[Any, str, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong VLLM_CONCURRENCY does not matter when --concurrency is right."""
    monkeypatch.setenv("VLLM_CONCURRENCY", "0")
    arguments = ["--upstream", "http://x/v1", "--concurrency", "2", "--port", "0", "--host", "::1"]
    assert CliRunner().invoke(command, arguments, standalone_mode=False).exception is None
    assert served[0][1:] == ("::1", 0)


def test_a_missing_address_is_an_operator_error(served: list[tuple[Any, str, int]]) -> None:
    """main() prints it in one line and ends with 4."""
    done = CliRunner().invoke(command, [], standalone_mode=False)
    assert isinstance(done.exception, InvalidSettings)
    assert not served
