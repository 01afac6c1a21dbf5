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
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """How it would have been served."""
    calls: list[dict[str, Any]] = []
    monkeypatch.chdir(tmp_path)
    for name in ("VLLM_BASE_URL", "VLLM_CONCURRENCY", "GATEWAY_LOG_FORMAT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(serving, "serve", lambda _app, **options: calls.append(options))
    return calls


def test_the_defaults_are_loopback_and_8001(served: list[dict[str, Any]]) -> None:
    """Nobody else reaches it unless asked to; the log is for people."""
    done = CliRunner().invoke(command, ["--upstream", "http://x/v1"], standalone_mode=False)
    assert done.exception is None
    assert served == [{"host": "127.0.0.1", "port": 8001, "log_format": "text", "grace_seconds": 30.0}]


def test_options_win_over_the_environment(served: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong VLLM_CONCURRENCY does not matter when --concurrency is right; so for the log's format."""
    monkeypatch.setenv("VLLM_CONCURRENCY", "0")
    monkeypatch.setenv("GATEWAY_LOG_FORMAT", "xml")
    arguments = [
        "--upstream",
        "http://x/v1",
        "--concurrency",
        "2",
        "--port",
        "0",
        "--host",
        "::1",
        "--log-format",
        "json",
    ]
    assert CliRunner().invoke(command, arguments, standalone_mode=False).exception is None
    assert served == [{"host": "::1", "port": 0, "log_format": "json", "grace_seconds": 30.0}]


def test_a_missing_address_is_an_operator_error(served: list[dict[str, Any]]) -> None:
    """main() prints it in one line and ends with 4."""
    done = CliRunner().invoke(command, [], standalone_mode=False)
    assert isinstance(done.exception, InvalidSettings)
    assert not served
