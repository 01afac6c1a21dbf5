"""The embedded engine against captured exchanges of vLLM 0.32: same status, keys, order, types and error words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from tests.integration.engine_rig import INSTANT, serving_in_thread
from tests.integration.vllm_contract import CAPTURES, Capture, compare, differences, load, parsed, send, shape

from vision_bench.engine.chat.declared.model import DeclaredModel
from vision_bench.engine.chat.declared.settings import DeclaredSettings
from vision_bench.engine.chat.settings import EngineSettings

MODEL = "tiny-omni"
SETTINGS: dict[str, Any] = {"served_model_names": (MODEL,), "max_model_len": 4096, "limit_mm_per_prompt": {"video": 2}}

KNOWN_DIFFERENCES: dict[str, str] = {
    "04c_fps2_audio": "vLLM's processor cache breaks here (its issue 44538); this engine has no such cache",
    "40b_silent_2_other_picture": "the same",
    "05d_bad_schema": "the words of one grammar compiler; ours are those of vLLM's default one",
    "06f_stream_stop.meta": "the stop string is made of the captured model's words; see test_engine_server_stream",
    "06g_stop": "the same",
    "05c_json_object": "vLLM's model ran into max_tokens; ours closes its object",
    "06h_logprobs": "no language model, so no log probabilities: null",
    "31c_logprobs_notriton": "the same",
    "07b_bad_base64": "starts with vLLM's words and then names the field",
    "07j_http_url_refused": "fetches no media: 400 at once, where vLLM tries three times and answers 500",
    "07j3_404_url": "the same, where vLLM answers 422",
    "08k_tokenize": "no tokenizer on board: 404",
    "20d_nocache_again": "sent without its own server; the same request as 20c",
    "21_per_request_metrics": "a 19 MB clip; the same shape as 20a",
}
"""Captures that the engine does not answer alike, and why. Each is tested by its own words where it matters."""

WITH_KEY = ("30", "31")
WITH_METRICS = ("20", "21")
BARE = ("40", "default_flags/")
"""Servers without request-id headers or prompt details: only statuses and errors are compared."""


def _names() -> list[str]:
    found = [str(path.relative_to(CAPTURES).with_suffix("")) for path in sorted(CAPTURES.rglob("*.json"))]
    return [name for name in found if name not in KNOWN_DIFFERENCES]


def _has_counts(name: str) -> bool:
    """Whether the capture is an answer that says how many tokens its media made."""
    response = load(name).response
    details = response.get("usage", {}).get("prompt_tokens_details") if isinstance(response, dict) else None
    # The capture of damaged media depends on which bytes were hit.
    return bool(details and details.get("multimodal_tokens")) and name != "07c3_damaged_middle"


def _settings(name: str) -> tuple[str, EngineSettings]:
    """Which server a capture was made with: a word for it, and its settings."""
    if name.startswith(WITH_KEY):
        return "key", EngineSettings(**SETTINGS, api_key="sekret")
    if name.startswith(WITH_METRICS):
        return "metrics", EngineSettings(**SETTINGS, per_request_metrics=True)
    if name.startswith("default_flags/"):
        return "untrusting", EngineSettings(**SETTINGS, trust_request_mm_kwargs=False)
    return "usual", EngineSettings(**SETTINGS)


class Targets:
    """Servers by the name of a capture: embedded ones, or the one that ``VISION_BENCH_CONTRACT_URL`` names."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._urls: dict[str, str] = {}
        self._given = os.environ.get("VISION_BENCH_CONTRACT_URL")
        self.model = os.environ.get("VISION_BENCH_CONTRACT_MODEL", MODEL) if self._given else MODEL

    def url(self, name: str) -> str:
        if self._given:
            return self._given
        word, settings = _settings(name)
        if word not in self._urls:
            model = DeclaredModel(DeclaredSettings(latencies=INSTANT, served_model_names=(MODEL,)))
            self._urls[word] = self._stack.enter_context(serving_in_thread(model, settings))
        return self._urls[word]

    async def answer(self, capture: Capture) -> httpx.Response:
        """The captured request, sent again."""
        async with httpx.AsyncClient(base_url=self.url(capture.name), timeout=60, trust_env=False) as client:
            return await send(client, capture, model=self.model)


@pytest.fixture(scope="module")
def targets() -> Iterator[Targets]:
    """All servers that these captures need, started when first asked for."""
    with ExitStack() as stack:
        yield Targets(stack)


def _comparable(capture: Capture, lines: list[str]) -> list[str]:
    if not capture.name.startswith(BARE):
        return lines
    return [line for line in lines if "prompt_tokens_details" not in line and "x-request-id" not in line]


@pytest.mark.parametrize("name", _names())
async def test_answers_as_captured(name: str, targets: Targets) -> None:
    """Status, content type, keys and their order, types and error texts are vLLM's."""
    capture = load(name)
    response = await targets.answer(capture)
    assert _comparable(capture, compare(capture, response, model=targets.model)) == []


@pytest.mark.parametrize("name", [name for name in _names() if _has_counts(name)])
async def test_counts_the_media_as_captured(name: str, targets: Targets) -> None:
    """Video tokens are vLLM's to the last one; sound may differ by one, for the tail that AAC adds."""
    capture = load(name)
    answer = parsed((await targets.answer(capture)).content)
    want = capture.response["usage"]["prompt_tokens_details"]["multimodal_tokens"]
    got = answer["usage"]["prompt_tokens_details"]["multimodal_tokens"]
    assert list(got) == list(want)
    assert all(abs(got[kind] - want[kind]) <= (1 if "audio" in want else 0) for kind in want)


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("05d_bad_schema", 400, "Grammar error: Invalid type: notatype"),
        ("07b_bad_base64", 400, "Non-base64 digit found in messages.0.content.0.video_url.url"),
        ("07j_http_url_refused", 400, "This engine fetches no media"),
        ("07j3_404_url", 400, "This engine fetches no media"),
    ],
)
async def test_known_difference_is_still_a_clear_refusal(name: str, status: int, says: str, targets: Targets) -> None:
    """Where the words are our own, they are an error body that says what is wrong."""
    response = await targets.answer(load(name))
    assert response.status_code == status
    assert response.json()["error"]["message"].startswith(says)


def test_every_known_difference_names_a_capture() -> None:
    """The table of differences holds nothing that is not there."""
    assert all((CAPTURES / f"{name}.json").is_file() for name in KNOWN_DIFFERENCES)


def test_every_known_difference_is_documented() -> None:
    """Whoever reads docs/engine.md learns of each capture that is not compared."""
    page = (CAPTURES.parents[2] / "docs" / "engine.md").read_text(encoding="utf-8")
    assert [name for name in KNOWN_DIFFERENCES if f"`{name}`" not in page] == []


def test_comparison_sees_a_lost_key_another_order_and_another_word() -> None:
    """The contract can fail: each of these is told."""
    want = {"error": {"message": "no", "type": "T", "param": None, "code": 400}}
    assert differences(shape(want), shape({"error": {"message": "no", "type": "T", "code": 400}})) != []
    assert differences(shape(want), shape({"error": {"type": "T", "message": "no", "param": None, "code": 400}})) != []
    assert differences(shape(want), shape({"error": want["error"] | {"message": "nope"}})) != []
    assert differences(shape(want), shape({"error": want["error"] | {"param": "x"}})) != []
    assert differences(shape(want), shape(want)) == []
