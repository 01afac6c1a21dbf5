"""``vision-bench serve``: what its options mean to the gateway."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from vision_bench.cli.serve import command
from vision_bench.errors import InvalidSettings, MissingExtra
from vision_bench.gateway import otlp, serving, workers


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


def test_a_collector_is_handed_on(served: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """--otlp wins over the environment; without the extra the line that installs it is the answer."""
    monkeypatch.setattr(otlp, "NEEDED", ("nowhere_to_be_found",))
    monkeypatch.setenv("GATEWAY_OTLP_ENDPOINT", "wrong")
    for workers_given in ("1", "2"):
        arguments = ["--upstream", "http://x/v1", "--otlp", "http://c:4318", "--workers", workers_given]
        done = CliRunner().invoke(command, arguments, standalone_mode=False)
        assert isinstance(done.exception, MissingExtra)
        assert "vision-bench[otel]" in str(done.exception)
    assert not served


def test_a_missing_address_is_an_operator_error(served: list[dict[str, Any]]) -> None:
    """main() prints it in one line and ends with 4."""
    done = CliRunner().invoke(command, [], standalone_mode=False)
    assert isinstance(done.exception, InvalidSettings)
    assert not served


def test_several_workers_get_the_settings_of_the_command_line(
    served: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What makes the application in each of them travels there by pickle, keys and all."""
    calls: list[tuple[Any, dict[str, Any]]] = []
    monkeypatch.setattr(workers, "serve_workers", lambda make, _settings, **options: calls.append((make, options)))
    monkeypatch.setenv("GATEWAY_API_KEYS", "one,two")
    arguments = ["--upstream", "http://x/v1,http://y/v1", "--concurrency", "3", "--workers", "2"]
    assert CliRunner().invoke(command, arguments, standalone_mode=False).exception is None
    ((make, options),) = calls
    assert (options, served) == ({"workers": 2, "host": "127.0.0.1", "port": 8001}, [])
    (settings,) = pickle.loads(pickle.dumps(make)).args  # noqa: S301 (our own)
    assert (settings.upstream_urls, settings.vllm_concurrency) == (("http://x/v1", "http://y/v1"), 3)
    assert [key.get_secret_value() for key in settings.gateway_api_keys] == ["one", "two"]


@pytest.mark.parametrize("count", ["0", "-1", "x"])
def test_a_number_of_workers_that_is_none_is_a_usage_error(count: str, served: list[dict[str, Any]]) -> None:
    """Exit 2, nothing served."""
    assert CliRunner().invoke(command, ["--upstream", "http://x/v1", "--workers", count]).exit_code == 2
    assert not served
