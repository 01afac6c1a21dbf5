"""The first experiment and an analysis of ten clips, by their commands, on a server with the flags of docs/vllm.md."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.gateway_rig import gateway
from tests.vllm import bodies
from tests.vllm.clips import make_clip
from tests.vllm.contract import found_differences, names
from tests.vllm.server import TRUST, VllmServer, VllmServers, free_port
from tests.vllm.streams import streamed_until

from vision_bench.wire.sse import DONE

ROOT = Path(__file__).resolve().parents[2]
CLIPS = 10
CLIP_SECONDS = 6


@pytest.fixture(scope="module")
def server(vllm_server: VllmServers) -> VllmServer:
    return vllm_server.get(
        TRUST,
        "--mm-processor-cache-gb=0",
        "--shutdown-timeout=60",
        "--enable-per-request-metrics",  # as in the captures of this server
        # The experiment's bodies set no max_tokens, and noise does not come to an end by itself.
        '--override-generation-config={"max_new_tokens":512}',
        model="qwen",
        max_model_len=16384,
    )


@dataclass(frozen=True, slots=True)
class Workplace:
    """A data folder of its own and a gateway process in front of vLLM."""

    folder: Path
    gateway: str
    environ: dict[str, str]

    def run(self, *command: str, ends_with: int = 0) -> str:
        """A command's stdout; it must end with the status that is expected."""
        done = subprocess.run(
            command, cwd=self.folder, env=self.environ, capture_output=True, text=True, timeout=800, check=False
        )
        assert done.returncode == ends_with, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def vision_bench(self, *arguments: str, ends_with: int = 0) -> str:
        """A verb of the command."""
        return self.run(sys.executable, "-m", "vision_bench.cli", *arguments, ends_with=ends_with)

    def experiment(self, script: str, out: Path, *arguments: str) -> None:
        """A script of experiments/01_pipeline, its run folder at ``out``."""
        path = ROOT / "experiments" / "01_pipeline" / script
        self.run(sys.executable, str(path), "--gateway", self.gateway, "--out", str(out), *arguments)


@pytest.fixture(scope="module")
def workplace(server: VllmServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    """Ten clips of a made baseball broadcast, cut as a user cuts them, and `vision-bench serve`."""
    folder = tmp_path_factory.mktemp("work")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("VLLM_", "GATEWAY", "DATA_DIR"))}
    port = free_port()
    found = Workplace(
        folder,
        f"http://127.0.0.1:{port}",
        {**kept, "DATA_DIR": str(folder / "data"), "PYTHONPATH": str(ROOT / "src"), "VLLM_BASE_URL": server.base_url},
    )
    seconds = str(CLIPS * CLIP_SECONDS)
    found.vision_bench(
        "broadcast", "make", "--genre", "baseball", "--seconds", seconds, "--out", str(folder / "data/raw/baseball")
    )
    film = str(folder / "data/raw/baseball/baseball.mp4")
    found.vision_bench("prepare", film, "--category", "baseball", "--start", "0", "--end", seconds)
    with (folder / "gateway.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "vision_bench.cli", "serve", "--port", str(port)],
            cwd=folder,
            env=found.environ,
            stdout=log,
            stderr=log,
        )
        try:
            wait_for(f"{found.gateway}/healthz", process)
            yield found
        finally:
            process.terminate()
            process.wait(30)


def wait_for(url: str, process: subprocess.Popen[bytes], *, within_seconds: float = 60) -> None:
    """Until ``url`` answers 200."""
    began = time.monotonic()
    while time.monotonic() - began < within_seconds and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    raise AssertionError(f"nobody answers at {url} after {within_seconds} s")


def test_api_check(workplace: Workplace) -> None:
    """All five rows pass: the gateway is up, text and video are answered, the sound is heard, the batch is whole."""
    out = workplace.folder / "api_check"
    workplace.experiment("api_check.py", out)
    rows = json.loads((out / "api_check.json").read_text())["rows"]
    assert [row["verdict"] for row in rows] == ["PASS"] * 5, rows


def test_batch_throughput(workplace: Workplace) -> None:
    """Every clip is answered one by one and as a batch, with a cold start for both arms."""
    out = workplace.folder / "batch"
    workplace.experiment("batch_throughput.py", out, "--controlled", "--rounds", "1")
    result = json.loads((out / "batch_throughput.json").read_text())
    assert result["sequential_ok"] == result["batch_ok"] == result["total_each"] == CLIPS
    assert result["x_batch_total"] == CLIPS
    assert sorted(result["arrival_order"]) == sorted(path.name for path in clips_of(workplace))
    assert result["ratio"] > 0


def clips_of(workplace: Workplace) -> list[Path]:
    return sorted((workplace.folder / "data/clips/baseball/baseball").glob("*.mp4"))


def test_analyze(workplace: Workplace) -> None:
    """Ten clips give ten good answers in the four fields, each from pictures and sound."""
    out = workplace.folder / "results.ndjson"
    command = ["analyze", str(workplace.folder / "data/clips"), "--gateway", workplace.gateway, "--out", str(out)]
    workplace.vision_bench(*command)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == CLIPS
    for line in lines:
        assert (line["status"], line["outcome"], line["use_audio_in_video"]) == (200, "ok", True), line
        assert set(line["result"]) == {"scene", "speech", "on_screen_text", "summary"}
        assert set(line["usage"]["prompt_tokens_details"]["multimodal_tokens"]) == {"video", "audio"}


def test_doctor(workplace: Workplace, server: VllmServer) -> None:
    """The doctor reaches the server and the gateway, and finds nothing that stands in the way."""
    for target in (server.base_url, workplace.gateway):
        report = json.loads(workplace.vision_bench("doctor", "--target", target, "--json"))
        assert report["healthy"], report
        states = {check["name"]: check["state"] for check in report["checks"]}
        assert states["takes a JSON schema"] == states["takes mm_processor_kwargs"] == "ok"


@pytest.mark.parametrize("name", names("20", "21"))
async def test_answers_as_captured(name: str, server: VllmServer) -> None:
    """Without the processor cache the same sound at another fps is no trap: 200, as captured."""
    assert await found_differences(name, server) == []


async def test_same_sound_is_no_trap_here(server: VllmServer) -> None:
    """What is 400 with the cache is answered without it."""
    async with gateway(server.base_url) as rig:
        for picture in (10, 11):
            clip = make_clip(picture=picture, tone_hz=333, seconds=2)
            body = bodies.ask(bodies.video(clip), model=server.model, **bodies.WITH_SOUND)
            assert (await rig.client.post("/chat", json=body)).status_code == 200


async def test_sigterm_with_time_to_finish(server: VllmServer) -> None:
    """With --shutdown-timeout a running stream comes to its own end, then the server is gone. The last test here."""
    async with gateway(server.base_url) as rig:
        body = bodies.ask(max_tokens=300, model=server.model, stream_options={"include_usage": True})
        events = await streamed_until(rig, server.process.terminate, body)
    assert events[-1] == DONE
    assert json.loads(events[-2])["usage"]["completion_tokens"] == 300
    assert await asyncio.to_thread(server.process.wait, 60) is not None
