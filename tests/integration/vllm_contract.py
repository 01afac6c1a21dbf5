"""Captured exchanges of vLLM 0.32 as a contract: send the same request elsewhere, compare the answer.

Works on any server: give it a base URL and a model name.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from PIL import Image
from tests.integration.engine_rig import events
from tests.vllm.bodies import uri
from tests.vllm.clips import make_clip

CAPTURES = Path(__file__).parents[1] / "golden" / "vllm_captures"
CAPTURED_MODEL = "tiny-omni"
VOLATILE = ("id", "created", "content", "system_fingerprint", "root")
"""Fields whose value says nothing about the shape."""

MAY_BE_NULL = ("stop_reason",)
"""Fields that are null or not with the words of the answer."""


@dataclass(frozen=True, slots=True)
class Capture:
    """One recorded exchange. ``body`` is an object, or text sent as it is; ``response`` JSON, or text."""

    name: str
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    status: int
    response: Any
    response_headers: dict[str, str]


def load(name: str) -> Capture:
    """A capture by its file name without ``.json``; ``.sse`` streams are found by the same name."""
    record = json.loads((CAPTURES / f"{name}.json").read_text())
    request = record["request"]
    if name.endswith(".meta"):
        stream = CAPTURES / f"{name.removesuffix('.meta')}.sse"
        return Capture(
            name, "POST", "/v1/chat/completions", {}, request, record["status"], stream.read_bytes(), record["headers"]
        )
    headers = {key.lower(): value for key, value in (request["headers"] or {}).items()}
    return Capture(
        name,
        request["method"],
        request["path"],
        headers,
        request["body"],
        record["status"],
        record["response"],
        record["response_headers"],
    )


async def send(client: httpx.AsyncClient, capture: Capture, *, model: str) -> httpx.Response:
    """The captured request again: media in place of what the capture shortened, ``model`` for the captured name."""
    headers = {"content-type": "application/json"} | capture.headers
    if capture.body is None:
        return await client.request(capture.method, capture.path, headers=capture.headers)
    text = capture.body if isinstance(capture.body, str) else json.dumps(_with_media(capture.body, capture.name))
    text = text.replace(f'"{CAPTURED_MODEL}"', f'"{model}"')
    return await client.request(capture.method, capture.path, content=text.encode(), headers=headers)


def _with_media(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _with_media(item, name) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_media(item, name) for item in value]
    if isinstance(value, str) and value.startswith("data:") and value.endswith(" chars)"):
        return media_uri(name)
    return value


def media_uri(name: str) -> str:
    """The kind of media that the capture of this name was sent with."""
    if name.startswith("16"):
        return f"data:video/jpeg;base64,{','.join(_jpegs(8))}"
    if name == "03b_noaudio_track":
        return uri(_clip(tone_hz=None))
    if name in ("07c_corrupt_mp4", "07c5_corrupt_with_audio"):
        return uri(random.Random(0).randbytes(5000))
    clip = _clip(tone_hz=0.0) if name.startswith("40") else _clip(tone_hz=440.0)
    middle = len(clip) // 2
    if name == "07c2_truncated_mp4":
        return uri(clip[:middle])
    if name == "07c3_damaged_middle":
        return uri(clip[:middle] + bytes(2000) + clip[middle + 2000 :])
    return uri(clip)


@cache
def _clip(*, tone_hz: float | None) -> bytes:
    return make_clip(tone_hz=tone_hz)


def _jpegs(count: int) -> Iterator[str]:
    for index in range(count):
        target = io.BytesIO()
        Image.new("RGB", (320, 240), (index * 20, 90, 160)).save(target, "JPEG")
        yield uri(target.getvalue()).partition(",")[2]


def shape(value: Any, key: str = "") -> Any:
    """A value without its words: keys in order, list lengths, types; numbers alike whether whole or not.

    The values of ``type``, ``code``, ``param``, ``object``, ``finish_reason`` and the like are kept: they are the
    contract.
    """
    if isinstance(value, dict):
        return {name: shape(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    if key in MAY_BE_NULL:
        return "any"
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return "text" if key in VOLATILE else value
    return "number"


def differences(want: Any, got: Any, place: str = "") -> list[str]:
    """Where two shapes differ, one line each; key order counts."""
    if isinstance(want, dict) and isinstance(got, dict):
        found = [] if list(want) == list(got) else [f"{place}: keys {list(want)} became {list(got)}"]
        return found + [
            line for key in want if key in got for line in differences(want[key], got[key], f"{place}.{key}")
        ]
    if isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            return [f"{place}: {len(want)} items became {len(got)}"]
        pairs = enumerate(zip(want, got, strict=True))
        return [line for index, (one, other) in pairs for line in differences(one, other, f"{place}[{index}]")]
    return [] if want == got else [f"{place}: {want!r} became {got!r}"]


def compare(capture: Capture, response: httpx.Response, *, model: str) -> list[str]:
    """What is not as captured: status, content type, shape; and for errors the very words."""
    found = [] if response.status_code == capture.status else [f"status {capture.status} became {response.status_code}"]
    want_headers, got_headers = capture.response_headers, response.headers
    found += [
        f"{name}: {want_headers.get(name)} became {got_headers.get(name)}"
        for name in ("content-type", "allow")
        if got_headers.get(name) != want_headers.get(name)
    ]
    if ("x-request-id" in got_headers) != ("x-request-id" in want_headers):
        found.append("x-request-id is there on one side only")
    want, got = parsed(capture.response), parsed(response.content)
    return found + differences(shape(want), _named(shape(got), model))


def parsed(body: Any) -> Any:
    """An answer as data: events, JSON, or nothing."""
    if not isinstance(body, bytes):
        return body
    if body.startswith(b"data:"):
        return events(body)
    return json.loads(body) if body else ""


def _named(value: Any, model: str) -> Any:
    """``value`` with the served name replaced by the captured one."""
    return json.loads(
        json.dumps(value).replace(f'"{model}"', f'"{CAPTURED_MODEL}"').replace(f"`{model}`", CAPTURED_MODEL)
    )
