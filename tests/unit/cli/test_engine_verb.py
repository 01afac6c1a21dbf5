"""``vision-bench engine``: which engine, which options, and what they come to."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from vision_bench.cli.engine import command
from vision_bench.engine import listener
from vision_bench.engine.chat import run as chat_run
from vision_bench.engine.realtime import run as realtime_run
from vision_bench.engine.realtime.late import Deployment
from vision_bench.engine.realtime.protocol import Deadlines
from vision_bench.engine.realtime.settings import RealtimeSettings
from vision_bench.engine.realtime.timing import TimingSettings, read_fault


class NoSocket:
    """What a bound listener is asked for."""

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 8100


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The settings with which an engine would have been served."""
    calls: list[Any] = []
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    monkeypatch.setattr(listener, "listen", lambda _host, _port: NoSocket())
    monkeypatch.setattr(chat_run, "run_engine", lambda _model, settings, **_: calls.append(settings))
    monkeypatch.setattr(realtime_run, "run_realtime_engine", lambda settings, **_: calls.append(settings))
    return calls


def test_realtime_serves_the_protocol_defaults(served: list[RealtimeSettings]) -> None:
    """Without options the settings are the module's own, and the line on stderr says where and as what."""
    done = CliRunner().invoke(command, ["--realtime"])
    assert done.exit_code == 0
    assert served == [RealtimeSettings()]
    assert "ws://127.0.0.1:8100/v1/realtime/video as lingbot-world" in done.stderr


def test_every_realtime_option_arrives(served: list[RealtimeSettings]) -> None:
    """Times, ramp, jitter, seed, faults, capabilities, sizes, clocks, key, names."""
    options = (
        "--ttfc-ms 20 --chunk-ms 30 --ramp-chunks 2 --jitter 0.1 --seed 4 --fault stall@12=3000 --fault drop@8#1 "
        "--capabilities camera,prompt --width 256 --height 192 --pipeline-chunks 2 --start-timeout 1 "
        "--stall-timeout 2 --cannot-stream --api-key k --served-model-name a --served-model-name b"
    )
    CliRunner().invoke(command, ["--realtime", *options.split()], standalone_mode=False)
    faults = (read_fault("stall@12=3000"), read_fault("drop@8#1"))
    assert served == [
        RealtimeSettings(
            served_model_names=("a", "b"),
            deployment=Deployment(256, 192),
            timing=TimingSettings(ttfc_ms=20, chunk_ms=30, ramp_chunks=2, jitter=0.1, seed=4, faults=faults),
            capabilities=frozenset({"camera", "prompt"}),
            pipeline_chunks=2,
            deadlines=Deadlines(1, 2),
            api_key="k",
            can_stream=False,
        )
    ]


def test_a_chat_engine_still_serves_qwen(served: list[Any]) -> None:
    """The name that nobody gave depends on the engine."""
    CliRunner().invoke(command, ["--model", "declared"], standalone_mode=False)
    assert served[0].served_model_names == ("qwen",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "choose one: --model baseline, --model declared or --realtime"),
        (["--realtime", "--model", "declared"], "choose one"),
        (["--realtime", "--tokens", "5"], "--tokens goes with --model; leave it out"),
        (["--model", "declared", "--ttfc-ms", "5"], "--ttfc-ms goes with --realtime; leave it out"),
        (["--realtime", "--fault", "fire@1"], "Fault 'fire' does not exist"),
        (["--realtime", "--capabilities", "sound"], "capability 'sound' does not exist"),
        (["--realtime", "--width", "100"], "100x480 cannot be served"),
        (["--realtime", "--jitter", "3"], "jitter is 3.0"),
    ],
)
def test_a_choice_without_effect_is_a_usage_error(served: list[Any], arguments: list[str], words: str) -> None:
    """Exit code 2, the value and the remedy; nothing is served."""
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert served == []
