"""OpenAI-shaped chat as vLLM speaks it: build a body from parts; read a whole answer, or what an error says.

Answers that come as a stream are read in ``chat_stream``. Captured from vLLM 0.21 and 0.32; both shapes read the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vision_bench.wire.shapes import content_in, label_in, object_in, objects_in, parse_json, shown, text_in, usage_in

Json = dict[str, Any]


def text_part(text: str) -> Json:
    """A content part of text."""
    return {"type": "text", "text": text}


def video_part(uri: str) -> Json:
    """A content part that names a video by URL, usually ``data:video/mp4;base64,…``. vLLM's own addition."""
    return {"type": "video_url", "video_url": {"url": uri}}


def image_part(uri: str) -> Json:
    """A content part that names a picture by URL, usually ``data:image/jpeg;base64,…``."""
    return {"type": "image_url", "image_url": {"url": uri}}


def audio_part(base64_data: str, audio_format: str = "wav") -> Json:
    """A content part that holds sound: bare base64, no ``data:`` in front, and the format's name."""
    return {"type": "input_audio", "input_audio": {"data": base64_data, "format": audio_format}}


def user_message(parts: Sequence[Json] | str) -> Json:
    """The user's turn; a string stands for itself."""
    return {"role": "user", "content": parts if isinstance(parts, str) else list(parts)}


def chat_body(
    *,
    model: str,
    messages: Sequence[Json],
    temperature: float | None = None,
    max_tokens: int | None = None,
    response_format: Json | None = None,
    media_io_kwargs: Json | None = None,
    mm_processor_kwargs: Json | None = None,
    chat_template_kwargs: Json | None = None,
    stream: bool = False,
    extra: Mapping[str, Any] | None = None,
) -> Json:
    """A chat completion body. What is None is left out, so that the server's own default holds.

    ``stream`` asks for the usage chunk too: without it nobody can count tokens. ``extra`` holds further keys as they
    go on the wire (``seed``, ``stop``, ``top_p``) and wins over the named ones.
    """
    body: Json = {"model": model, "messages": list(messages)}
    optional = {
        "temperature": temperature,
        "max_tokens": max_tokens,
        "response_format": response_format,
        "media_io_kwargs": media_io_kwargs,
        "mm_processor_kwargs": mm_processor_kwargs,
        "chat_template_kwargs": chat_template_kwargs,
    }
    body.update({key: value for key, value in optional.items() if value is not None})
    if stream:
        body.update(stream=True, stream_options={"include_usage": True})
    body.update(extra or {})
    return body


def json_schema_format(name: str, schema: Mapping[str, Any], *, strict: bool = True) -> Json:
    """``response_format`` that holds an answer to a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "strict": strict, "schema": dict(schema)}}


@dataclass(frozen=True, slots=True)
class Reply:
    """What one chat answer says. A field that the server did not send is None."""

    text: str | None
    reasoning: str | None = None
    finish_reason: str | None = None
    usage: Json | None = None
    model: str | None = None
    response_id: str | None = None
    stop_reason: str | int | None = None
    tool_calls: tuple[Json, ...] = ()


def read_reply(body: object) -> Reply:
    """First choice of a whole (not streamed) answer.

    Content that is an array of parts is their text, joined. Names and usage of another kind are left out.

    Raises:
        ValueError: the body holds an error object, no choice to read, or a choice of another shape; the message is fit
            for a user.
    """
    if not isinstance(body, dict):
        raise ValueError(f"the answer is {type(body).__name__}, not a JSON object")
    if body.get("error"):
        raise ValueError(error_message(body))
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ValueError(f"the answer has no choices (keys: {', '.join(sorted(map(str, body))) or 'none'})")
    choice = choices[0]
    message = object_in(choice, "message")
    return Reply(
        text=content_in(message, "content"),
        reasoning=reasoning_in(message),
        finish_reason=text_in(choice, "finish_reason"),
        usage=usage_in(body),
        model=label_in(body, "model"),
        response_id=label_in(body, "id"),
        stop_reason=stop_reason_in(choice),
        tool_calls=tuple(objects_in(message, "tool_calls")),
    )


def reasoning_in(message: Json) -> str | None:
    """What a message or a delta tells of the model's thoughts, under either of vLLM's names."""
    return content_in(message, "reasoning") or content_in(message, "reasoning_content")


def stop_reason_in(choice: Json) -> str | int | None:
    """The stop string or token that ended a choice."""
    reason = choice.get("stop_reason")
    return reason if isinstance(reason, str | int) else None


def error_body(message: str, *, type: str, code: int, param: str | None = None) -> Json:
    """An error as OpenAI and vLLM shape it."""
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


def error_message(body: object) -> str:
    """Any error body as one string.

    Takes what servers and proxies really send: ``{"error": {"message": …}}``, ``{"error": "Unauthorized"}``,
    ``{"detail": "Not Found"}``, FastAPI's list of details, ``{"detail": {"error": {"message": …}}}`` of ``/v1beta``,
    ``{"message": …}``, and plain text; as an object, a string or bytes.
    """
    if isinstance(body, bytes | bytearray):
        body = bytes(body).decode(errors="replace")
    if isinstance(body, str):
        try:
            parsed = parse_json(body)
        except ValueError:
            return body.strip() or "empty answer"
        return error_message(parsed) if isinstance(parsed, dict) else body.strip()
    if not isinstance(body, dict):
        return str(body) if body is None else shown(body)
    found = next((body[key] for key in ("error", "detail", "message") if body.get(key)), None)
    if isinstance(found, dict) and isinstance(found.get("error"), dict):
        found = found["error"]
    if isinstance(found, dict):
        return shown(found.get("message") or found.get("detail") or found)
    if isinstance(found, list):
        return "; ".join(_detail(item) for item in found)
    return shown(body if found is None else found)


def _detail(item: object) -> str:
    if not isinstance(item, dict):
        return shown(item)
    steps = item.get("loc")
    place = ".".join(map(shown, steps)) if isinstance(steps, list) else shown(steps or "")
    text = shown(item.get("msg") or item.get("message") or item)
    return f"{place}: {text}" if place else text
