"""`make demo`: a real film, cut into clips, sent through the gateway, analysed, checked and reported.

Every process that it starts it also ends, when it is interrupted too. Media go to DATA_DIR (default data/),
results to runs/demo/. A second run uses what the first one made.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DATA_DIR") or ROOT / "data")
OUT = ROOT / "runs" / "demo"
LOGS = OUT / "logs"
EXPERIMENT = ROOT / "experiments" / "01_pipeline"
HEALTH_SECONDS = 60.0
CREDIT = "Big Buck Bunny © 2008 Blender Foundation, peach.blender.org, CC BY 3.0"
FALLBACK_CREDIT = "Synthetic broadcast made by vision-bench"
# What the declared engine claims: about a second a clip, four at a time, so that the batch has something to win.
DECLARED = ("--preprocess-ms", "60", "--encoder-ms", "120", "--prefill-ms", "80", "--decode-ms", "10", "--tokens", "48")

console = Console(stderr=True)


class DemoFailed(Exception):
    """A step that the rest cannot do without; the message says which log to read."""


@dataclass(frozen=True, slots=True)
class Source:
    """What is cut: where it lies, which part, and whom to name."""

    path: Path
    category: str
    end_seconds: int
    credit: str

    @property
    def scene(self) -> str:
        return f"{self.category}/{self.path.stem}"


def free_port(preferred: int) -> int:
    """``preferred`` when nobody holds it, else one that the system names."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise DemoFailed("no free port on 127.0.0.1")


def environment(**extra: str) -> dict[str, str]:
    """This process's environment with the data folder made absolute and ``extra`` on top."""
    return {**os.environ, "DATA_DIR": str(DATA.resolve()), "PYTHONUNBUFFERED": "1", **extra}


def run(*command: str | Path, accept: tuple[int, ...] = (0,)) -> int:
    """Run one step in the foreground; its progress bars show.

    Raises:
        DemoFailed: an exit status that is not in ``accept``.
    """
    process = subprocess.Popen([str(part) for part in command], env=environment(), cwd=ROOT)
    try:
        status = process.wait()
    except BaseException:
        stop(process)
        raise
    if status not in accept:
        raise DemoFailed(f"{' '.join(str(part) for part in command)} ended with status {status}")
    return status


def verb(*arguments: str | Path) -> tuple[str | Path, ...]:
    """A vision-bench command line under this interpreter."""
    return (sys.executable, "-m", "vision_bench.cli", *arguments)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a child: politely first, by force after five seconds."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def server(name: str, command: tuple[str | Path, ...], health: str, **env: str) -> Iterator[None]:
    """A background process that answers ``health`` before the block starts and is gone after it.

    Raises:
        DemoFailed: it ended early, or did not answer in time; the message names its log.
    """
    log = LOGS / f"{name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(part) for part in command], stdout=file, stderr=file, env=environment(**env), cwd=ROOT
        )
        try:
            wait_for_health(name, process, health, log)
            console.print(f"  [green]up[/green] {name} (pid {process.pid}) {health}")
            yield
        finally:
            stop(process)


def wait_for_health(name: str, process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Poll ``url`` until it answers 200."""
    deadline = time.monotonic() + HEALTH_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise DemoFailed(f"{name} ended with status {process.returncode} before it answered; see {log}")
        try:
            with urllib.request.urlopen(url, timeout=2) as reply:  # noqa: S310  # a loopback URL made here
                if reply.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise DemoFailed(f"{name} did not answer {url} in {HEALTH_SECONDS:.0f} s; see {log}")


def step(number: int, text: str) -> None:
    """A heading."""
    console.print(f"\n[bold]{number}/6[/bold] {text}")


def get_source() -> Source:
    """The real film, or the synthetic broadcast when the film cannot be had."""
    status = run(sys.executable, ROOT / "script" / "fetch_film.py", "--data-dir", DATA, accept=(0, 4))
    if status == 0:
        return Source(DATA / "raw" / "docu" / "bbb.mp4", "docu", 594, CREDIT)
    console.print("[yellow]The film cannot be had; a synthetic broadcast takes its place.[/yellow]")
    folder = DATA / "raw" / "baseball"
    if not (folder / "baseball.mp4").is_file():
        run(*verb("broadcast", "make", "--genre", "baseball", "--seconds", "594", "--out", folder))
    return Source(folder / "baseball.mp4", "baseball", 594, FALLBACK_CREDIT)


def start_engine(stack: contextlib.ExitStack, model: str, preferred_port: int, *flags: str) -> str:
    """An embedded engine; returns its /v1 address."""
    port = free_port(preferred_port)
    command = verb("engine", "--model", model, "--port", str(port), *flags)
    stack.enter_context(server(f"engine-{model}", command, f"http://127.0.0.1:{port}/health"))
    return f"http://127.0.0.1:{port}/v1"


def start_gateway(stack: contextlib.ExitStack, upstream: str, name: str, preferred_port: int) -> str:
    """A gateway in front of ``upstream``; returns its address."""
    port = free_port(preferred_port)
    url = f"http://127.0.0.1:{port}"
    command = verb("serve", "--port", str(port))
    settings = {"VLLM_BASE_URL": upstream, "VLLM_CONCURRENCY": "4"}
    stack.enter_context(server(f"gateway-{name}", command, f"{url}/healthz", **settings))
    return url


def demo() -> Path:
    """All six steps; returns the report."""
    LOGS.mkdir(parents=True, exist_ok=True)
    step(1, "Get a real film through the package index")
    source = get_source()
    step(2, "Cut it into 6-second clips, and one clip with the picture blacked out")
    cut = ("--category", source.category, "--start", "0", "--end", str(source.end_seconds))
    run(*verb("prepare", source.path, *cut))
    with contextlib.ExitStack() as stack:
        step(3, "Start two embedded engines and a gateway in front of each")
        checked = start_gateway(stack, start_engine(stack, "baseline", 8100), "baseline", 8001)
        timed = start_gateway(stack, start_engine(stack, "declared", 8101, *DECLARED), "declared", 8002)
        scene = ("--scene", source.scene, "--out", OUT)
        step(4, "Check every route; compare one by one with a batch")
        check = run(
            sys.executable, EXPERIMENT / "api_check.py", "--gateway", checked, "--require-black", *scene, accept=(0, 5)
        )
        run(sys.executable, EXPERIMENT / "batch_throughput.py", "--gateway", timed, *scene)
        step(5, "Analyse every clip")
        clips, results = DATA / "clips" / source.scene, OUT / "results.ndjson"
        analysis = run(*verb("analyze", clips, "--gateway", checked, "--lang", "en", "--out", results), accept=(0, 3))
    step(6, "Write the report")
    report = OUT / "report.html"
    run(*verb("report", OUT, "--out", report, "--credit", source.credit))
    if check or analysis:
        raise DemoFailed(f"a check or a clip failed; the report has them first: {report}")
    return report


def main() -> int:
    """Run the demo; 0 when everything passed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    started = time.monotonic()
    try:
        report = demo()
    except DemoFailed as problem:
        console.print(f"[red]{problem}[/red]")
        return 1
    except KeyboardInterrupt:
        console.print("[yellow]Interrupted; every process that the demo started has ended.[/yellow]")
        return 130
    console.print(f"\nDone in {time.monotonic() - started:.0f} s. Open [bold]{report}[/bold]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
