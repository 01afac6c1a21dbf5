"""Our preprocessing inside transformers and inside vLLM: the same bytes and the same answers, or left alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import pytest
from tests.preprocess_cases import QWEN3_VIDEO
from tests.vllm import bodies
from tests.vllm.clips import make_clip, pictures
from tests.vllm.environment import VllmEnvironment
from tests.vllm.inside import run
from tests.vllm.installed import unpacked_wheel
from tests.vllm.server import VllmServer, VllmServers
from tests.vllm.stages import ask

from vision_bench.media.encode import data_uri, jpeg
from vision_bench.preprocess.plugins.in_vllm import SWITCH

CLASSES = ("Qwen2VLVideoProcessor", "Qwen2VLImageProcessor")
PROCESSORS = Path(__file__).parent / "processors.py"


def qwen3_vl(source: Path, folder: Path) -> Path:
    """The processor of a Qwen3-VL, with the tokenizer of the tiny checkpoint."""
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "preprocessor_config.json", "config.json"):
        shutil.copy(source / name, folder / name)
    named = {"processor_class": "Qwen3VLProcessor"}
    for name in ("tokenizer_config.json", "preprocessor_config.json"):
        settings = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(settings | named))
    (folder / "video_preprocessor_config.json").write_text(json.dumps(QWEN3_VIDEO | named))
    return folder


@pytest.mark.parametrize("family", ["qwen3-omni", "qwen3-vl"])
def test_autoprocessor_gives_the_same_bytes_on_and_off(
    family: str, vllm_environment: VllmEnvironment, tmp_path: Path
) -> None:
    """30 calls: every output equal in type, shape and bytes; ours where it can be; stock's own errors; off is off."""
    checkpoint = vllm_environment.checkpoint
    if family == "qwen3-vl":
        checkpoint = qwen3_vl(checkpoint, tmp_path / "qwen3-vl")
    done = run(vllm_environment, PROCESSORS, checkpoint)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    video = "Qwen3VLVideoProcessor" if family == "qwen3-vl" else CLASSES[0]
    assert found["classes"] == [video, CLASSES[1]]
    assert found["reason"] is None
    unequal = {name: case["outputs"] for name, case in found["cases"].items() if not case["equal"]}
    assert not unequal
    wrong = {name: case["counts"] for name, case in found["cases"].items() if not as_named(name, case)}
    assert not wrong
    assert found["off_again"]
    assert found["compares_with_stock"]
    assert found["rounded_alike"]


def as_named(name: str, case: dict[str, Any]) -> bool:
    """Whether inputs went where the case's name says; what stock refuses (one frame, in Qwen3-VL) is left to it."""
    ours = [kind for kind in case["counts"] if not kind.startswith("left")]
    left = [kind for kind in case["counts"] if kind.startswith("left")]
    return bool(left and not ours) if name.startswith("left") or "error" in case["outputs"] else bool(ours and not left)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which our wheel counts as installed."""
    return unpacked_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def switched(vllm_server: VllmServers, packages: Path) -> Iterator[Callable[[str], VllmServer]]:
    """``switched("on")`` is a new server with our wheel beside it and the switch where it is put."""

    def start(switch: str) -> VllmServer:
        vllm_server.stop()
        vllm_server.more = {"PYTHONPATH": str(packages), SWITCH: switch}
        return vllm_server.get()

    yield start
    vllm_server.stop()  # the tests of other modules ask for servers without it
    vllm_server.more = {}


def test_vllm_answers_the_same_with_and_without(
    switched: Callable[[str], VllmServer], record_property: Callable[[str, object], None]
) -> None:
    """20 clips and 2 images at temperature 0: the same words; on, only the API server preprocesses with ours."""
    parts = [bodies.video(make_clip(seconds=2, picture=number, tone_hz=None)) for number in range(20)]
    parts += [picture(number) for number in range(2)]
    answers: dict[str, list[str]] = {}
    for switch in ("off", "on"):
        server = switched(switch)
        with httpx.Client(timeout=120, trust_env=False) as client:
            told = [ask(client, server, bodies.ask(part)) for part in parts]
        answers[switch] = [answer for answer, _ in told]
        times = [stages for _, stages in told[:20]]
        named = {"TTFT": "ttft_ms", "queue": "queue_ms", "prefill": "prefill_ms", "before": "before_engine_ms"}
        middle = {name: round(median(getattr(one, field) for one in times), 1) for name, field in named.items()}
        record_property(switch, middle)
        print(f"{switch}: medians of 20 clips in ms, {middle}; started in {server.started_seconds:.0f} s")
        log = server.log.read_text(errors="replace")
        ours = [line for line in log.splitlines() if "is preprocessed by vision-bench" in line]
        if switch == "off":
            assert f"off, as {SWITCH} says" in log
            assert not ours
        else:
            assert "preprocessing with vision-bench: on for Qwen's processors" in log
            assert {name for line in ours for name in CLASSES if name in line} == set(CLASSES)
            assert all("APIServer" in line and "every bfloat16" in line for line in ours), ours
    assert answers["on"] == answers["off"]
    assert len(set(answers["off"])) > 10  # the model looks


def picture(number: int) -> dict[str, Any]:
    """An image part."""
    pixels = next(pictures(1, number))
    return {"type": "image_url", "image_url": {"url": data_uri(jpeg(pixels), "image/jpeg")}}
