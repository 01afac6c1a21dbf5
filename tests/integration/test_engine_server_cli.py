"""`vision-bench engine` as a process: it starts, says where, serves, refuses what it cannot do, and stops."""

from __future__ import annotations

import signal
import socket
import subprocess

import httpx
import pytest
from tests.integration.engine_rig import CHAT, ENGINE_COMMAND, engine_process

HELLO = {"messages": [{"role": "user", "content": "Hello"}]}


def client_of(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, timeout=20, trust_env=False)


def test_declares_what_the_flags_say() -> None:
    """Served name, answer length and times come from the command line, and the truth repeats them."""
    flags = ("--served-model-name", "omni", "--tokens", "5", "--prefill-ms", "30", "--decode-ms", "1")
    with engine_process(*flags) as (url, _), client_of(url) as client:
        answer = client.post(CHAT, json=HELLO | {"model": "omni"}).json()
        unknown = client.post(CHAT, json=HELLO | {"model": "qwen"})
        truth = client.get("/truth").text
    assert answer["usage"]["completion_tokens"] == 5
    assert unknown.status_code == 404
    assert '"declared_prefill":30.0' in truth


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_stops_on_a_signal_with_a_stream_running(number: signal.Signals, code: int) -> None:
    """The stream is told, the process is gone in seconds."""
    with engine_process("--tokens", "5000") as (url, process), client_of(url) as client:
        with client.stream("POST", CHAT, json=HELLO | {"stream": True}) as response:
            chunks = response.iter_bytes()
            next(chunks)
            process.send_signal(number)
            rest = b"".join(chunks)
        assert process.wait(timeout=20) == code
    assert b'"error"' in rest and rest.endswith(b"data: [DONE]\n\n")


def test_taken_port_is_exit_code_4_and_names_the_remedy() -> None:
    """Whoever runs the machine must choose another."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*ENGINE_COMMAND, "--model", "declared", "--port", port],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 4
    assert f"127.0.0.1:{port}" in done.stderr and "--port" in done.stderr


@pytest.mark.parametrize(
    ("flags", "code", "says"),
    [
        (("--fail-as", "often"), 2, "truncate, error-event, hang"),
        (("--fail-rate", "2"), 2, "--fail-rate"),
        (("--limit-mm-per-prompt", "two"), 2, "--limit-mm-per-prompt"),
    ],
)
def test_wrong_flags_are_refused_before_anything_listens(flags: tuple[str, ...], code: int, says: str) -> None:
    """The message names the flag or what it may be."""
    command = [*ENGINE_COMMAND, "--model", "declared", "--port", "0", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert says in done.stderr
