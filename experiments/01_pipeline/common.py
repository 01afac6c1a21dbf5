"""What both scripts of this experiment share: clips, bodies, and the log of calls. Plain httpx, as any client."""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent.parent
PROMPT = {
    "en": "Analyze the video and audio in this clip in Korean.",
    "ko": "이 클립의 영상과 음성을 한국어로 분석해 주세요.",
}
SELF_INTRODUCTION = {
    "en": "Please write a one-sentence self-introduction in Korean.",
    "ko": "한국어로 자기소개를 한 문장으로 써 주세요.",
}


def arguments(description: str) -> argparse.ArgumentParser:
    """The flags that both scripts take."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--gateway", default="http://127.0.0.1:8001", help="where the gateway listens")
    parser.add_argument("--scene", default="baseball/baseball", help="category/base below DATA_DIR/clips")
    parser.add_argument("--clips", type=int, default=12, help="how many clips of the scene, by name")
    parser.add_argument("--model", default="qwen")
    parser.add_argument("--lang", choices=sorted(PROMPT), default="en", help="language of the prompt")
    parser.add_argument("--out", type=Path, help="run folder (default runs/01_pipeline/<time>)")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one call")
    return parser


def data_dir() -> Path:
    """``DATA_DIR`` or the repository's ``data/``."""
    return Path(os.environ.get("DATA_DIR") or ROOT / "data")


def scene_clips(scene: str, count: int) -> list[Path]:
    """The first ``count`` clips of a scene by name; ends the program when there is none."""
    folder = data_dir() / "clips" / scene
    clips = sorted(folder.glob("*.mp4"))[:count]
    if not clips:
        category = scene.split("/", maxsplit=1)[0]
        print(
            f"No clips in {folder}. Put a video into {data_dir()}/raw/{category}/ and run: "
            f"vision-bench prepare {data_dir()}/raw/{scene}.mp4 --category {category}",
            file=sys.stderr,
        )
        raise SystemExit(4)
    return clips


def run_folder(out: Path | None) -> Path:
    """The folder that results go to, made if need be."""
    folder = out or ROOT / "runs" / "01_pipeline" / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def text_body(model: str, prompt: str) -> dict[str, Any]:
    """A chat body without media."""
    return {"model": model, "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}]}


def clip_body(model: str, clip: bytes, prompt: str, *, temperature: float = 0.3) -> dict[str, Any]:
    """The experiment's body: one MP4 as one part, its sound included."""
    uri = "data:video/mp4;base64," + base64.b64encode(clip).decode("ascii")
    return {
        "model": model,
        "temperature": temperature,
        "messages": [
            {
                "role": "user",
                "content": [{"type": "video_url", "video_url": {"url": uri}}, {"type": "text", "text": prompt}],
            }
        ],
        "mm_processor_kwargs": {"use_audio_in_video": True},
        "chat_template_kwargs": {"enable_thinking": False},
    }


def encode(body: dict[str, Any]) -> bytes:
    """The bytes that are sent; a body is encoded once, whatever is done with it later."""
    return json.dumps(body, ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP call as the client saw it. ``response`` is the JSON body, or its text when it is none."""

    name: str
    status: int | None
    elapsed_ms: float
    request_id: str | None
    response: Any
    error: str | None

    @property
    def text(self) -> str:
        """The answer's text, empty when there is none."""
        try:
            return str(self.response["choices"][0]["message"]["content"] or "")
        except (KeyError, IndexError, TypeError):
            return ""

    @property
    def usage(self) -> str:
        """``prompt 23 · completion 40``, or a dash."""
        usage = self.response.get("usage") if isinstance(self.response, dict) else None
        if not isinstance(usage, dict):
            return "tokens n/a"
        return f"prompt {usage.get('prompt_tokens')} · completion {usage.get('completion_tokens')}"

    @property
    def problem(self) -> str:
        """Why the call is not a success, empty when it is."""
        if self.error:
            return self.error
        if self.status != 200:
            return f"HTTP {self.status}: {json.dumps(self.response, ensure_ascii=False)[:300]}"
        return ""


class CallLog:
    """Every call's fingerprint, status, elapsed time and full response, written as it happens."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "calls.ndjson"

    def write(self, call: Call, body: bytes) -> None:
        """Append one line; the payload itself is never kept, only its hash and size."""
        record = {
            "name": call.name,
            "status": call.status,
            "elapsed_ms": round(call.elapsed_ms, 1),
            "request_id": call.request_id,
            "body_sha256": hashlib.sha256(body).hexdigest(),
            "body_bytes": len(body),
            "response": call.response,
            "error": call.error,
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


@dataclass(frozen=True, slots=True)
class Caller:
    """A client and the log of what it did."""

    client: httpx.Client
    log: CallLog

    def call(self, name: str, method: str, path: str, body: bytes = b"") -> Call:
        """Send one request and log it. A connection that fails is a result, not an exception; nothing is retried."""
        started = time.monotonic()
        try:
            reply = self.client.request(
                method, path, content=body or None, headers={"Content-Type": "application/json"}
            )
        except httpx.HTTPError as problem:
            elapsed_ms = (time.monotonic() - started) * 1000
            result = Call(name, None, elapsed_ms, None, None, f"{type(problem).__name__}: {problem}")
        else:
            elapsed_ms = (time.monotonic() - started) * 1000
            try:
                content: Any = reply.json()
            except ValueError:
                content = reply.text[:2000]
            result = Call(name, reply.status_code, elapsed_ms, reply.headers.get("x-request-id"), content, None)
        self.log.write(result, body)
        return result


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a result file whole or not at all."""
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    part.replace(path)
