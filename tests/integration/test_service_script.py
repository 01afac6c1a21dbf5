"""script/service.sh: what it starts, what it tells apart, what it leaves behind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]


@dataclass
class Service:
    """The script in a folder of its own, on a port of its own."""

    root: Path
    port: int

    def __call__(self, verb: str, **env: str) -> tuple[int, str]:
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("VLLM_", "HOST", "PORT", "MAX_"))
        }
        done = subprocess.run(
            [self.root / "script" / "service.sh", verb],
            env={**kept, "PORT": str(self.port), "VLLM_BASE_URL": "http://127.0.0.1:9/v1", **env},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    @property
    def pid_file(self) -> Path:
        return self.root / "runs" / "service" / f"gateway-{self.port}.pid"

    @property
    def pid(self) -> int:
        return int(self.pid_file.read_text().split()[0])


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "script").mkdir()
    shutil.copy2(ROOT / "script" / "service.sh", tmp_path / "script")
    (tmp_path / "src").symlink_to(ROOT / "src")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / ".venv" / "bin" / "python").chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    service = Service(tmp_path, port)
    yield service
    service("stop")


def test_the_four_verbs(service: Service) -> None:
    """start answers healthz when it returns, twice is once, restart is a new process, stop leaves nothing."""
    health = f"http://127.0.0.1:{service.port}/healthz"
    assert service("status")[0] == 1
    code, text = service("start")
    assert code == 0, text
    assert httpx.get(health, trust_env=False).json() == {"ok": True}
    pid = service.pid
    code, text = service("start")
    assert (code, f"already running: PID {pid}" in text) == (0, True)
    code, text = service("status")
    assert code == 0
    assert all(word in text for word in (f"PID {pid}", f"port {service.port}", "healthz ok"))
    assert service("restart")[0] == 0
    assert service.pid != pid
    assert service("stop")[0] == 0
    assert not service.pid_file.exists()
    with pytest.raises(httpx.ConnectError):
        httpx.get(health, trust_env=False)
    assert service("stop")[0] == 0, "stopping what does not run is no failure"


def test_a_stale_pid_file_is_told_and_removed(service: Service) -> None:
    """A PID that now belongs to another program, or that is no number, stops nobody from starting."""
    service.pid_file.parent.mkdir(parents=True)
    for content in (str(os.getpid()), "garbage"):
        service.pid_file.write_text(content)
        code, text = service("status")
        assert (code, "stale PID file" in text) == (1, True), text
        assert not service.pid_file.exists()


@pytest.mark.parametrize("what", ["words apart", "other folder", "other start"])
def test_stop_spares_a_program_that_has_got_the_pid(service: Service, tmp_path: Path, what: str) -> None:
    """Words of ours on its command line are not enough: their order, the folder and the start must be ours too."""
    words = ["app:app", str(service.port)] if what == "words apart" else []
    words = words or ["-m", "uvicorn", "app:app", "--port", str(service.port)]
    (tmp_path / "elsewhere").mkdir()
    cwd = tmp_path / "elsewhere" if what == "other folder" else service.root
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", *words], cwd=cwd) as other:
        try:
            service.pid_file.parent.mkdir(parents=True)
            service.pid_file.write_text(f"{other.pid} 1\n" if what == "other start" else f"{other.pid}\n")
            code, text = service("stop")
            assert (code, "stale PID file" in text, other.poll()) == (0, True, None), text
        finally:
            other.kill()


def test_two_starts_at_once_are_one(service: Service) -> None:
    """One gateway, and the PID file names it: the second start finds it running."""
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(service, ["start"] * 3))
    assert [code for code, _ in answers] == [0, 0, 0], answers
    assert sum("started: PID" in text for _, text in answers) == 1
    assert all(f"PID {service.pid}," in text for _, text in answers)
    assert service("stop")[0] == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{service.port}/healthz", trust_env=False)


@pytest.mark.parametrize("port", ["99999", "65536", "0", "abc", "80 01", "-1", "08001", ""])
@pytest.mark.parametrize("verb", ["start", "status", "stop"])
def test_a_port_that_is_none_is_told(service: Service, verb: str, port: str) -> None:
    """Nothing is started, no other program is blamed, and no file is written."""
    code, text = service(verb, PORT=port)
    assert (code, "1 to 65535" in text) == (2, True), text
    assert not (service.root / "runs").exists()


@pytest.mark.parametrize("host", ["", " ", "http://127.0.0.1"])
def test_a_host_that_is_none_is_told(service: Service, host: str) -> None:
    """Empty is not "everywhere"."""
    code, text = service("start", HOST=host)
    assert (code, "is no host" in text) == (2, True), text


def test_a_taken_port_is_told(service: Service) -> None:
    """Another program on the port: exit 3, nothing started, and status says so too."""
    with socket.create_server(("127.0.0.1", service.port)):
        code, text = service("start")
        assert (code, "cannot listen" in text) == (3, True), text
        assert not service.pid_file.exists()
        code, text = service("status")
        assert (code, "another program" in text) == (1, True), text


def test_a_dying_server_is_told_with_its_reason(service: Service) -> None:
    """A wrong setting: exit 4 and the one line that says what is wrong, not a wait for healthz."""
    code, text = service("start", VLLM_CONCURRENCY="0")
    assert code == 4
    assert "VLLM_CONCURRENCY='0'" in text
    assert "Traceback" not in text
    assert not service.pid_file.exists()


def test_a_restart_with_wrong_settings_stops_nothing(service: Service) -> None:
    """Exit 4 with the reason; the gateway that runs goes on."""
    assert service("start")[0] == 0
    pid = service.pid
    code, text = service("restart", VLLM_CONCURRENCY="many")
    assert code == 4
    assert "error: VLLM_CONCURRENCY='many'" in text
    assert "not restarted; what runs goes on" in text
    assert service.pid == pid
    assert httpx.get(f"http://127.0.0.1:{service.port}/healthz", trust_env=False).json() == {"ok": True}


def test_usage(service: Service) -> None:
    """No such verb: exit 2 and the list."""
    code, text = service("reload")
    assert (code, "start | status | restart | stop" in text) == (2, True)
