"""What vLLM's plugin does when it is called: on, off, or left alone with the reason; never an error."""

from __future__ import annotations

import logging
import multiprocessing
import os
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from vision_bench.errors import InvalidSettings, MissingTool
from vision_bench.preprocess.plugins import in_transformers, in_vllm, methods
from vision_bench.preprocess.plugins.in_transformers import Installed
from vision_bench.preprocess.plugins.in_vllm import CACHE, SWITCH, THREADS, Options
from vision_bench.preprocess.plugins.work import Work

LOG = logging.getLogger("vllm.vision_bench")


class Switch:
    """Stands in for transformers: keeps what was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[dict[str, Any]] = []
        self.forks: list[Any] = []
        self.answer: Installed | Exception = Installed(None, None)
        monkeypatch.setattr(in_transformers, "install", self.install)
        monkeypatch.setattr(os, "register_at_fork", self.at_fork)
        for name in (SWITCH, THREADS, CACHE):
            monkeypatch.delenv(name, raising=False)

    def at_fork(self, *, after_in_child: Any) -> None:
        self.forks.append(after_in_child)

    def install(self, **options: Any) -> Installed:
        self.asked.append(options)
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer.reason:
            warnings.warn(self.answer.reason, stacklevel=2)
        return self.answer


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Switch:
    return Switch(monkeypatch)


def test_options_are_read_from_three_variables() -> None:
    """On with one thread and no cache, unless they say otherwise."""
    assert Options.read({}) == Options(True, 1, 0)
    assert Options.read({SWITCH: " OFF "}) == Options(False, 1, 0)
    assert Options.read({SWITCH: "on", THREADS: "4", CACHE: "512"}) == Options(True, 4, 512)


@pytest.mark.parametrize(
    ("name", "value"),
    [(SWITCH, "yes"), (SWITCH, ""), (THREADS, "0"), (THREADS, "-1"), (THREADS, "two"), (THREADS, ""), (CACHE, "1.5")],
)
def test_a_value_that_means_nothing_is_named(name: str, value: str) -> None:
    """A typing error does not count as on or off."""
    with pytest.raises(InvalidSettings, match=name):
        Options.read({name: value})


def test_installed_it_is_on(switch: Switch, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """One line to where vLLM will log, with the way to turn it off; forked children do without."""
    monkeypatch.setattr(logging.Logger, "hasHandlers", lambda self: False)
    monkeypatch.setenv(THREADS, "3")
    in_vllm.register()
    assert switch.asked == [{"threads": 3, "cache_bytes": 0, "log": LOG}]
    assert switch.forks == [in_transformers.uninstall]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("INFO preprocessing with vision-bench: on for Qwen's processors, 3 thread(s) a call")
    assert f"{SWITCH}=off" in line
    assert not LOG.handlers


def test_where_logging_is_set_up_that_is_used(switch: Switch, caplog: pytest.LogCaptureFixture) -> None:
    """No second handler, no second line; the cache is told of."""
    os.environ[CACHE] = "64"
    try:
        with caplog.at_level(logging.INFO, LOG.name):
            in_vllm.register()
    finally:
        del os.environ[CACHE]
    assert switch.asked[0]["cache_bytes"] == 64_000_000
    (record,) = caplog.records
    assert "64 MB of tubelets kept" in record.getMessage()


def test_the_variable_turns_it_off(switch: Switch, monkeypatch: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is replaced, and the line says why."""
    monkeypatch.setenv(SWITCH, "off")
    with caplog.at_level(logging.INFO, LOG.name):
        in_vllm.register()
    assert not switch.asked
    assert f"off, as {SWITCH} says" in caplog.text


def test_a_refusal_is_one_line_and_no_warning(switch: Switch, caplog: pytest.LogCaptureFixture) -> None:
    """vLLM starts as if nothing were installed."""
    switch.answer = Installed(None, "transformers 4.57.0 was not tried")
    with warnings.catch_warnings(), caplog.at_level(logging.INFO, LOG.name):
        warnings.simplefilter("error")
        in_vllm.register()
    (record,) = caplog.records
    assert "the stock processors stay: transformers 4.57.0 was not tried" in record.getMessage()
    assert not switch.forks


@pytest.mark.parametrize("error", [MissingTool("no torch"), ImportError("no class"), AttributeError("no method")])
def test_a_server_starts_whatever_is_wrong(switch: Switch, error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """vLLM does not guard its plugins: an error here would end it."""
    switch.answer = error
    in_vllm.register()
    assert str(error) in caplog.text


def test_a_wrong_variable_does_not_stop_a_server(
    switch: Switch, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said, and everything stays stock."""
    monkeypatch.setenv(SWITCH, "maybe")
    in_vllm.register()
    assert not switch.asked
    assert "'maybe'; it is on or off" in caplog.text


def test_only_a_bfloat16_model_gets_bfloat16() -> None:
    """vLLM casts to the model's dtype; float16 and float32 are cast from float32, as before."""
    work = Work(LOG, compiled=False)

    class Context:
        """How vLLM calls a processor."""

        def __init__(self, dtype: str) -> None:
            self.model_config = SimpleNamespace(dtype=dtype)

        def call_hf_processor(self, data: str) -> tuple[str, bool]:
            return data, work.rounds

    methods.replace(Context, "call_hf_processor", in_vllm.rounding(work))
    assert Context("torch.bfloat16").call_hf_processor("clip") == ("clip", True)
    assert Context("torch.float16").call_hf_processor(data="clip") == ("clip", False)
    assert not work.rounds


def test_a_vllm_that_calls_processors_otherwise_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It casts by itself, and ours stays float32."""
    monkeypatch.setattr(in_vllm, "CALLER", "vllm_of_another_year.context")
    in_vllm.write_the_models_dtype(Work(LOG, compiled=False))
    monkeypatch.setattr(in_vllm, "CALLER", "json")
    in_vllm.write_the_models_dtype(Work(LOG, compiled=False))


@pytest.mark.parametrize("name", ["EngineCore", "EngineCore_DP1", "VllmWorker-0"])
def test_engines_and_workers_are_left_alone(switch: Switch, name: str, monkeypatch: Any, caplog: Any) -> None:
    """They preprocess no requests: nothing is replaced, compiled or said."""
    monkeypatch.setattr(multiprocessing.current_process(), "name", name)
    in_vllm.register()
    assert not switch.asked
    assert not caplog.records
