"""Every command of the original experiment, as it is written there, on a made baseball broadcast."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from vision_bench.media.probe import probe

from .conftest import WorkTree, free_port, stop

CLIP_NAMES = [f"{i + 1:04d}_{600 + 6 * i:04d}-{606 + 6 * i:04d}.mp4" for i in range(12)]
FIRST_CLIP = CLIP_NAMES[0]

REQUEST_BUILDER = """
REPO_DIR=$(git rev-parse --show-toplevel)
CLIP=${REPO_DIR}/data/%(kind)s/baseball/baseball/0001_0600-0606.mp4
PYTHONPATH=src uv run python - "$CLIP" <<'PY'
import base64, json, sys
b = base64.b64encode(open(sys.argv[1],"rb").read()).decode()
json.dump({"model":"qwen","messages":[{"role":"user","content":[
    {"type":"video_url","video_url":{"url":"data:video/mp4;base64,"+b}},
    {"type":"text","text":"Analyze the video and audio in this clip in Korean."}]}],
  "temperature":0.3,
  "mm_processor_kwargs":{"use_audio_in_video":True},
  "chat_template_kwargs":{"enable_thinking":False}}, open("%(out)s","w"), ensure_ascii=False)
PY
"""


def answer(reply: httpx.Response) -> str:
    """The text of a chat answer."""
    assert reply.status_code == 200, reply.text[:500]
    return str(reply.json()["choices"][0]["message"]["content"])


def test_prepare_data_names_clips_and_one_blackout_as_the_seed_does(prepared: WorkTree) -> None:
    """{seq}_{start}-{end}.mp4 under data/clips, the first of them under data/blackout, the source untouched."""
    clips = sorted(path.name for path in (prepared.root / "data/clips/baseball/baseball").glob("*.mp4"))
    assert clips == CLIP_NAMES
    blackout = [path.name for path in (prepared.root / "data/blackout/baseball/baseball").glob("*.mp4")]
    assert blackout == [FIRST_CLIP]
    assert sorted(path.name for path in (prepared.root / "data/raw/baseball").iterdir()) == [
        "baseball.labels.json",
        "baseball.mp4",
    ]


def test_uv_run_uses_the_environment_as_it_stands(tree: WorkTree) -> None:
    """`uv run` installs nothing, removes nothing, writes no uv.lock and needs no network."""
    before = tree.sh("uv pip freeze").stdout
    assert "httptools" in before
    assert tree.sh(
        "PYTHONPATH=src uv run python -c 'import app, sys; print(sys.prefix)'", VLLM_BASE_URL="http://127.0.0.1:9/v1"
    )
    assert tree.sh("uv pip freeze").stdout == before
    assert not (tree.root / "uv.lock").exists()


def test_health_is_ok_with_an_id(gateway: str) -> None:
    """GET /healthz as in the seed's section 3.3.1."""
    reply = httpx.get(f"{gateway}/healthz")
    assert (reply.status_code, reply.json()) == (200, {"ok": True})
    assert reply.headers["x-request-id"]


@pytest.mark.parametrize("page", ["/docs", "/redoc", "/openapi.json"])
def test_the_interactive_documentation_is_there(gateway: str, page: str) -> None:
    """Swagger, ReDoc and the schema answer 200."""
    assert httpx.get(f"{gateway}{page}").status_code == 200


def test_the_request_builder_of_the_seed_feeds_chat(prepared: WorkTree, gateway: str, tmp_path: Path) -> None:
    """Video, then the same with the blackout copy: the second answer says black, and both heard the same sound."""
    texts = {}
    for kind in ("clips", "blackout"):
        body = tmp_path / f"{kind}.json"
        prepared.sh(REQUEST_BUILDER % {"kind": kind, "out": body})
        reply = httpx.post(
            f"{gateway}/chat", content=body.read_bytes(), headers={"Content-Type": "application/json"}, timeout=120
        )
        texts[kind] = answer(reply)
    assert "black" in texts["blackout"].lower()
    assert texts["blackout"] != texts["clips"]


def test_service_script_walks_through_its_four_verbs(tree: WorkTree, engine: str) -> None:
    """start waits for healthz, status tells PID and port, restart changes the PID, stop ends it."""
    port = str(free_port())
    env = {"PORT": port, "VLLM_BASE_URL": engine}
    try:
        tree.sh("./script/service.sh start", **env)
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").json() == {"ok": True}
        first = tree.sh("./script/service.sh status", **env).stdout
        assert port in first
        tree.sh("./script/service.sh restart", **env)
        assert tree.sh("./script/service.sh status", **env).stdout != first
    finally:
        tree.sh("./script/service.sh stop", **env)
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{port}/healthz")
    assert tree.sh("./script/service.sh status", check=False, **env).returncode != 0


def test_api_check_passes_all_five_rows(prepared: WorkTree, gateway: str) -> None:
    """experiments/01_pipeline/api_check.py with the default scene, the baseline engine behind the gateway."""
    done = prepared.sh(
        f"uv run python experiments/01_pipeline/api_check.py --gateway {gateway} --require-black --out runs/check",
        DATA_DIR=str(prepared.root / "data"),
    )
    rows = json.loads((prepared.root / "runs/check/api_check.json").read_text())["rows"]
    assert [row["verdict"] for row in rows] == ["PASS"] * 5, done.stdout
    assert [row["route"] for row in rows] == [
        "GET /healthz",
        "POST /chat",
        "POST /chat",
        "POST /chat",
        "POST /chat/batch",
    ]
    calls = [json.loads(line) for line in (prepared.root / "runs/check/calls.ndjson").read_text().splitlines()]
    assert {call["status"] for call in calls} == {200}
    assert not any("base64," in json.dumps(call) for call in calls)


def test_api_check_fails_when_the_sound_does_not_arrive(prepared: WorkTree) -> None:
    """A model that answers every clip alike fails the blackout row with the reason, exit status 5."""
    port, gate = free_port(), free_port()
    deaf = prepared.start(f"exec vision-bench engine --model declared --port {port}", f"http://127.0.0.1:{port}/health")
    front = prepared.start(
        f"exec vision-bench serve --port {gate}",
        f"http://127.0.0.1:{gate}/healthz",
        VLLM_BASE_URL=f"http://127.0.0.1:{port}/v1",
    )
    try:
        done = prepared.sh(
            f"python experiments/01_pipeline/api_check.py --gateway http://127.0.0.1:{gate} --out runs/deaf",
            check=False,
            DATA_DIR=str(prepared.root / "data"),
        )
    finally:
        stop(front)
        stop(deaf)
    assert done.returncode == 5, done.stdout + done.stderr
    rows = {row["item"]: row for row in json.loads((prepared.root / "runs/deaf/api_check.json").read_text())["rows"]}
    assert rows["Single · blackout"]["verdict"] == "FAIL"
    assert "sound did not reach the model" in rows["Single · blackout"]["reason"]


@pytest.mark.parametrize("flags", ["", "--controlled --rounds 1"])
def test_batch_throughput_brings_every_item_back(prepared: WorkTree, gateway: str, flags: str) -> None:
    """Both arms 12/12 (4/4 here for speed), X-Batch-Total, a line an item."""
    out = "runs/batch" + str(len(flags))
    prepared.sh(
        f"python experiments/01_pipeline/batch_throughput.py --gateway {gateway} --clips 4 --out {out} {flags}",
        DATA_DIR=str(prepared.root / "data"),
    )
    result: dict[str, Any] = json.loads((prepared.root / out / "batch_throughput.json").read_text())
    assert (result["sequential_ok"], result["batch_ok"], result["x_batch_total"]) == (4, 4, 4)
    assert sorted(result["arrival_order"]) == CLIP_NAMES[:4]
    assert result["ratio"] > 0


def test_the_seeds_loops_make_the_names_that_prepare_makes(prepared: WorkTree, tmp_path: Path) -> None:
    """benchmarks/clips holds the two shell loops; with imageio-ffmpeg as `ffmpeg` they name the same files."""
    import imageio_ffmpeg

    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ffmpeg").symlink_to(imageio_ffmpeg.get_ffmpeg_exe())
    loop_tree = tmp_path / "tree"
    (loop_tree / "data/raw/baseball").mkdir(parents=True)
    (loop_tree / "data/raw/baseball/baseball.mp4").symlink_to(prepared.root / "data/raw/baseball/baseball.mp4")
    (loop_tree / "benchmarks").symlink_to(prepared.root / "benchmarks")
    tree = WorkTree(loop_tree)
    tree.sh("git init -q .")
    path = f'PATH="{programs}:$PATH"'
    tree.sh(f"{path} bash benchmarks/clips/seed_loop.sh", CLIPS="14", check=True)
    tree.sh(f"{path} bash benchmarks/clips/seed_blackout.sh", check=True)
    made = sorted((loop_tree / "data/clips/baseball/baseball").glob("*.mp4"))
    assert [path.name for path in made][:12] == CLIP_NAMES
    assert [path.name for path in (loop_tree / "data/blackout/baseball/baseball").glob("*.mp4")] == [FIRST_CLIP]
    # What the loop leaves behind past the end of the source, and prepare never does: files without a picture.
    assert [path.stat().st_size < 2000 for path in made[12:]] == [True, True]
    ours = probe(prepared.root / "data/clips/baseball/baseball" / FIRST_CLIP)
    theirs = probe(made[0])
    assert ours.video is not None and theirs.video is not None
    assert (ours.video.width, ours.video.height) == (theirs.video.width, theirs.video.height)


@pytest.mark.debian("curl jq")
@pytest.mark.parametrize("example", ["chat", "batch"])
def test_curl_examples(prepared: WorkTree, gateway: str, example: str) -> None:
    """script/curl_examples.sh prints the answer, or one line an item."""
    assert shutil.which("curl"), "curl is missing: apt-get install curl"
    done = prepared.sh(f"./script/curl_examples.sh {example}", GATEWAY=gateway)
    if example == "batch":
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert lines and all(line["status"] == 200 for line in lines)
    else:
        assert "chatcmpl-" in done.stdout


@pytest.mark.debian("curl jq")
def test_the_curl_lines_of_the_seed(prepared: WorkTree, gateway: str) -> None:
    """The health line and the text call as written, but for the port."""
    assert shutil.which("jq"), "jq is missing: apt-get install jq"
    health = prepared.sh(f"curl -i {gateway}/healthz").stdout
    assert "200 OK" in health and '{"ok":true}' in health
    text = prepared.sh(
        f"""curl -sS -X POST {gateway}/chat \\
        -H "Content-Type: application/json" \\
        -d '{{"model": "qwen", "messages": [{{"role": "user", "content": [
          {{"type": "text", "text": "Please write a one-sentence self-introduction in Korean."}}]}}]}}' | jq"""
    ).stdout
    assert json.loads(text)["choices"][0]["message"]["content"]
