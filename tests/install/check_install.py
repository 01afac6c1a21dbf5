"""Is an installed vision-bench whole, without its source tree? Standard library only; run by .ci/run.

    python check_install.py none      the base install: clear words for what is missing, everything else works
    python check_install.py demo      with the extras of the demo

It makes its own clip, and starts and ends an engine and a gateway on loopback.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib.metadata import distribution
from pathlib import Path

PROGRAM = [sys.executable, "-m", "vision_bench.cli"]
BASE_LIMIT_MB = 280
"""263 are there: PyAV and its codecs 103, NumPy 59, Plotly, whose script every page of a run carries, 39. It is so near
that whatever comes in by accident is seen; torch alone would be 800."""

MAKE_CLIP = """
import av, numpy as np, sys
with av.open(sys.argv[1], "w") as output:
    video = output.add_stream("libx264", rate=30)
    video.width, video.height, video.pix_fmt = 160, 120, "yuv420p"
    audio = output.add_stream("aac", rate=44100, layout="mono")
    for i in range(30 * 13):
        frame = av.VideoFrame.from_ndarray(np.full((120, 160, 3), i % 250, np.uint8), "rgb24")
        frame.pts = i
        output.mux(video.encode(frame))
    output.mux(video.encode(None))
    wave = (np.sin(np.arange(44100 * 13) * 0.06) * 0.3).astype(np.float32)
    for start in range(0, len(wave), 1024):
        sound = av.AudioFrame.from_ndarray(wave[None, start:start + 1024], "fltp", "mono")
        sound.sample_rate, sound.pts = 44100, start
        output.mux(audio.encode(sound))
    output.mux(audio.encode(None))
"""

QWEN3_VIDEO = {
    "video_processor_type": "Qwen3VLVideoProcessor",
    "patch_size": 16,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "size": {"shortest_edge": 4096, "longest_edge": 25_165_824},
}


def expect(condition: bool, message: str) -> None:
    """Stop with a message when the fact does not hold."""
    if not condition:
        raise SystemExit(f"FAIL {message}")
    print(f"ok   {message}")


def run(*arguments: str, code: int = 0, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """One command, its exit status checked."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    expect(done.returncode == code, f"vision-bench {' '.join(arguments)[:70]} ends with {code}: {done.stderr[-400:]!r}")
    return done


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"FAIL {url} did not answer")


def installed_megabytes() -> float:
    """Everything in this environment's site-packages, without pip, uv and the build backend."""
    site = Path(str(distribution("vision-bench").locate_file("")))
    skipped = ("pip", "setuptools", "uv", "hatchling", "editables")
    folders = [path for path in site.iterdir() if not path.name.startswith(skipped)]
    files = [path for folder in folders for path in ([folder] if folder.is_file() else folder.rglob("*"))]
    return sum(path.stat().st_size for path in files if path.is_file() and path.suffix != ".pyc") / 1e6


def check_missing_extras(folder: Path) -> None:
    """What an extra brings is refused with the line that installs it."""
    port = str(free_port())
    refused = run("engine", "--model", "baseline", "--port", port, code=4, folder=folder)
    expect("vision-bench[baseline]" in refused.stderr, "the baseline engine names its extra")
    refused = run("prepare", "source.mp4", "--category", "news", "--encoder", "libopenh264", code=4, folder=folder)
    expect("vision-bench[ffmpeg]" in refused.stderr, "libopenh264 names its extra")
    refused = run("broadcast", "make", "--genre", "drama", "--seconds", "6", "--out", "b", code=4, folder=folder)
    expect("vision-bench[broadcast]" in refused.stderr, "the broadcast names its extra")
    collector = ("--otlp", "http://127.0.0.1:4318")
    refused = run("serve", "--upstream", "http://127.0.0.1:9/v1", "--port", port, *collector, code=4, folder=folder)
    expect("vision-bench[otel]" in refused.stderr, "spans name their extra")


def check_preprocessing(folder: Path) -> None:
    """Without Numba the preprocessor gives its bits by NumPy, and says why it is slow."""
    settings = folder / "video_preprocessor_config.json"
    settings.write_text(json.dumps(QWEN3_VIDEO))
    done = run("equivalence", settings.name, "--against", "reference", "--cases", "1", folder=folder)
    expect("E0 against preprocess.reference" in done.stdout, "preprocessing works without its extra")
    expect("vision-bench[preprocess]" in done.stderr, "and names it")


def check_pipeline(folder: Path, model: str) -> None:
    """Cut, serve, analyse, report: the whole walk on two clips."""
    run(
        "prepare", "source.mp4", "--category", "news", "--start", "0", "--end", "12", "--bitrate", "300k", folder=folder
    )
    clips = folder / "data" / "clips" / "news" / "source"
    expect(len(list(clips.glob("*.mp4"))) == 2, "two clips are cut")
    engine_port, port = free_port(), free_port()
    engine = subprocess.Popen([*PROGRAM, "engine", "--model", model, "--port", str(engine_port)], cwd=folder)
    env = {**os.environ, "VLLM_BASE_URL": f"http://127.0.0.1:{engine_port}/v1"}
    gateway = subprocess.Popen([*PROGRAM, "serve", "--port", str(port)], cwd=folder, env=env)
    try:
        wait_for(f"http://127.0.0.1:{engine_port}/health", engine)
        wait_for(f"http://127.0.0.1:{port}/healthz", gateway)
        url = f"http://127.0.0.1:{port}"
        for page in ("/docs", "/redoc"):
            with urllib.request.urlopen(url + page, timeout=10) as reply:
                expect(reply.status == 200, f"{page} is served from the package")
        run("analyze", str(clips), "--gateway", url, "--out", "runs/a/results.ndjson", folder=folder)
    finally:
        for process in (gateway, engine):
            process.terminate()
            process.wait(20)
    lines = [json.loads(line) for line in (folder / "runs/a/results.ndjson").read_text().splitlines()]
    expect([line["outcome"] for line in lines] == ["ok", "ok"], "both clips are answered and valid")
    run("report", "runs/a/results.ndjson", "--out", "runs/a/report.html", folder=folder)
    expect("</html>" in (folder / "runs/a/report.html").read_text(), "the report is a page")


def main() -> int:
    extras = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-c", MAKE_CLIP, "source.mp4"], cwd=folder, check=True)
        run("--help", folder=folder)
        run("doctor", "--json", folder=folder)
        if extras == "none":
            size = installed_megabytes()
            expect(size < BASE_LIMIT_MB, f"the base install is {size:.0f} MB, under {BASE_LIMIT_MB}")
            check_missing_extras(folder)
            check_preprocessing(folder)
        check_pipeline(folder, "baseline" if extras == "demo" else "declared")
    return 0


if __name__ == "__main__":
    sys.exit(main())
