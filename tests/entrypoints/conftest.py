"""A work tree of its own, so that commands run as they are written and never touch the user's data/ and runs/."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = ("src", "script", "experiments", "benchmarks", "requirements", "pyproject.toml", "Makefile", "README.md")


def free_port() -> int:
    """A port that nobody holds right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class WorkTree:
    """A folder that looks like a clone: links to the sources, a data/ and runs/ of its own, a git root."""

    root: Path

    def environment(self, **extra: str) -> dict[str, str]:
        """This environment's programs first on PATH, and no setting of the caller's that would leak in."""
        dropped = ("DATA_DIR", "VLLM_", "HOST", "PORT", "VIRTUAL_ENV", "PYTHONPATH", "MAX_BATCH_ITEMS", "GATEWAY")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
        programs = Path(sys.executable).parent
        return {**kept, "PATH": f"{programs}:{kept['PATH']}", "UV_OFFLINE": "1", "UV_NO_CACHE": "1", **extra}

    def sh(
        self, command: str, *, check: bool = True, timeout: float = 240, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command line as a person would type it at the root of the tree."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.root,
            env=self.environment(**env),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"{command}\nexit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done

    def start(self, command: str, url: str, **env: str) -> subprocess.Popen[bytes]:
        """Start a server in a process group of its own and wait until ``url`` answers 200."""
        log = (self.root / "runs" / "server.log").open("ab")
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.root,
            env=self.environment(**env),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            try:
                with urllib.request.urlopen(url, timeout=2) as reply:
                    if reply.status == 200:
                        return process
            except OSError:
                time.sleep(0.1)
        stop(process)
        raise AssertionError(
            f"{command} did not answer {url}:\n{(self.root / 'runs' / 'server.log').read_text()[-3000:]}"
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the whole group of a server that ``WorkTree.start`` began."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> WorkTree:
    """The tree with a made baseball broadcast as its only source: 600 s of lead, 72 s of play."""
    root = tmp_path_factory.mktemp("clone")
    for name in SHARED:
        (root / name).symlink_to(ROOT / name)
    (root / ".venv").symlink_to(Path(sys.prefix))
    (root / "runs").mkdir()
    found = WorkTree(root)
    found.sh("git init -q .")
    found.sh(
        "vision-bench broadcast make --genre baseball --lead 600 --seconds 72 --out data/raw/baseball", timeout=200
    )
    return found


@pytest.fixture(scope="session")
def prepared(tree: WorkTree) -> WorkTree:
    """The tree after the seed's one-go preparation."""
    done = tree.sh("./script/prepare_data.sh baseball baseball.mp4", check=False)
    # 72 s of play give 12 of the 100 clips that the window asks for: made, and told apart from all.
    assert done.returncode == 3, done.stderr[-2000:]
    assert "12 clips made of 100" in done.stdout + done.stderr
    return tree


@pytest.fixture(scope="session")
def engine(tree: WorkTree) -> Iterator[str]:
    """An embedded baseline engine; its /v1 address."""
    port = free_port()
    process = tree.start(f"exec vision-bench engine --model baseline --port {port}", f"http://127.0.0.1:{port}/health")
    yield f"http://127.0.0.1:{port}/v1"
    stop(process)


@pytest.fixture(scope="session")
def gateway(tree: WorkTree, engine: str) -> Iterator[str]:
    """The gateway started as the seed starts it, in front of the engine."""
    port = free_port()
    process = tree.start(
        f"PYTHONPATH=src uv run uvicorn app:app --port {port}",
        f"http://127.0.0.1:{port}/healthz",
        VLLM_BASE_URL=engine,
    )
    yield f"http://127.0.0.1:{port}"
    stop(process)
