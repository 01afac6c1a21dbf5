"""Bodies that the tests send, short to write and small to run."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from tests.vllm.server import MODEL

Body = dict[str, Any]


def uri(data: bytes, media_type: str = "video/mp4") -> str:
    """``data`` as a data: address."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def video(data: bytes | str) -> Body:
    """A video part: bytes of an MP4, or an address."""
    return {"type": "video_url", "video_url": {"url": data if isinstance(data, str) else uri(data)}}


def audio(wav: bytes) -> Body:
    """A sound part."""
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(wav).decode(), "format": "wav"}}


def ask(*parts: Body, text: str = "Describe.", model: str = MODEL, **fields: Any) -> Body:
    """A body with the parts and then the text; 16 tokens at temperature 0 unless ``fields`` say otherwise."""
    content: str | Sequence[Body] = [*parts, {"type": "text", "text": text}] if parts else text
    return {
        "model": model,
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 16,
        "temperature": 0,
        **fields,
    }


def at_fps(fps: float) -> Body:
    """The field that chooses how many frames a second are looked at."""
    return {"media_io_kwargs": {"video": {"fps": fps}}}


WITH_SOUND: Body = {"mm_processor_kwargs": {"use_audio_in_video": True}}


def schema(name: str, value: Body) -> Body:
    """The field that holds an answer to a JSON schema."""
    return {"response_format": {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": value}}}
