"""A chat body as a ``ChatRequest``, or the refusal that vLLM words for it. Order of the checks as in vLLM."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from vision_bench.engine.chat.attachments import read_part
from vision_bench.engine.chat.body import Fields
from vision_bench.engine.chat.errors import bad_parameter, unknown_model
from vision_bench.engine.chat.model import BadChatRequest, ChatRequest, MediaPart
from vision_bench.engine.chat.response_format import read_answer_form
from vision_bench.engine.chat.settings import EngineSettings

CODEC_BACKENDS = ("opencv", "torchcodec", "pynvvideocodec", "deepstream")
VIDEO_BACKENDS = ("opencv", "qwen_vl", "dynamic", "identity")


def parse_chat(
    body: dict[str, Any],
    *,
    settings: EngineSettings,
    request_id: str,
    arrived_ns: int,
    knows_model: Callable[[str], bool] = lambda _: False,
) -> ChatRequest:
    """The request in ``body``; fields that nobody knows are ignored.

    Args:
        body: the JSON object.
        request_id: what the answer's id is made of.
        arrived_ns: ``time.monotonic_ns`` at the body's last byte.
        knows_model: says whether a name that is not served stands for something anyway (see the declared model).

    Raises:
        BadChatRequest: with vLLM's status, type, message and param.
    """
    fields = Fields(body)
    numbers = _numbers(fields)
    form = read_answer_form(fields)
    messages = _messages(fields)
    video_kwargs = _video_kwargs(fields)
    processor_kwargs = fields.mapping("mm_processor_kwargs")
    model = fields.string("model")
    stream = fields.flag("stream")
    fields.refuse_if_any()

    if model is not None and model not in settings.served_model_names and not knows_model(model):
        raise unknown_model(model, settings.served_model_names)
    if not messages:
        raise BadChatRequest("Cannot apply chat template to an empty conversation. Provide at least one message.")
    form.check()
    _check_kwargs_allowed(body, settings)
    max_tokens = _check_sampling(numbers, settings)
    prompt, system, media = _read_messages(messages)
    _check_media_counts(media, settings)
    return ChatRequest(
        request_id=request_id,
        model=model or settings.model_name,
        prompt=prompt,
        system=system,
        media=media,
        max_tokens=max_tokens,
        temperature=numbers["temperature"] if numbers["temperature"] is not None else 1.0,
        seed=numbers["seed"],
        stop=_stop_strings(body),
        schema=form.schema,
        json_object=form.json_object,
        choices=form.choices,
        regex=form.regex,
        fps=_fps(video_kwargs),
        num_frames=_whole(video_kwargs.get("num_frames")),
        max_pixels=_max_pixels(processor_kwargs),
        use_audio_in_video=bool(processor_kwargs.get("use_audio_in_video", False)),
        n=numbers["n"] if numbers["n"] is not None else 1,
        stream=stream,
        arrived_ns=arrived_ns,
        raw=body,
    )


def _numbers(fields: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: fields.integer(name) for name in ("max_tokens", "max_completion_tokens", "n", "seed")
    }
    for name in ("temperature", "top_p"):
        found[name] = fields.number(name)
    return found


def _messages(fields: Fields) -> list[dict[str, Any]]:
    messages = fields.body.get("messages")
    if "messages" not in fields.body:
        fields.complain("missing", "messages", "Field required", fields.body)
    elif not isinstance(messages, list):
        fields.complain("list_type", "messages", "Input should be a valid list", messages)
    else:
        for index, message in enumerate(messages):
            if not isinstance(message, dict):
                fields.complain("dict_type", f"messages.{index}", "Input should be a valid dictionary", message)
            elif "role" not in message:
                fields.complain("missing", f"messages.{index}.role", "Field required", message)
        return messages
    return []


def _video_kwargs(fields: Fields) -> dict[str, Any]:
    kwargs = fields.mapping("media_io_kwargs").get("video")
    if kwargs is not None and not isinstance(kwargs, dict):
        fields.complain("dict_type", "media_io_kwargs.video", "Input should be a valid dictionary", kwargs)
    return kwargs if isinstance(kwargs, dict) else {}


def _check_kwargs_allowed(body: dict[str, Any], settings: EngineSettings) -> None:
    if settings.trust_request_mm_kwargs:
        return
    for name, what in (("mm_processor_kwargs", "preprocessing"), ("media_io_kwargs", "media loading")):
        if body.get(name):
            raise BadChatRequest(
                f"Per-request {name} are disabled by default because they can change multimodal {what} resource usage. "
                f"Start the server with --trust-request-mm-kwargs only when clients are trusted. (parameter={name})",
                param=name,
            )


def _check_sampling(numbers: dict[str, Any], settings: EngineSettings) -> int:
    """The request's token limit, after the checks of vLLM's sampling parameters."""
    n, temperature, top_p = numbers["n"], numbers["temperature"], numbers["top_p"]
    if n is not None and n < 1:
        raise BadChatRequest(f"n must be at least 1, got {n}.")
    if temperature is not None:
        if not math.isfinite(temperature):
            raise bad_parameter("temperature", temperature, f"temperature must be a finite number, got {temperature}.")
        if temperature < 0:
            raise bad_parameter("temperature", temperature, f"temperature must be non-negative, got {temperature}.")
        if temperature > 2:
            raise bad_parameter("temperature", temperature, f"temperature must be in [0, 2], got {temperature}.")
    if top_p is not None and not 0 < top_p <= 1:
        raise bad_parameter("top_p", top_p, f"top_p must be in (0, 1], got {top_p}.")
    limit = numbers["max_completion_tokens"]
    max_tokens: int | None = limit if limit is not None else numbers["max_tokens"]
    if max_tokens is None:
        return settings.max_model_len
    if max_tokens < 1:
        raise bad_parameter("max_tokens", max_tokens, f"max_tokens must be at least 1, got {max_tokens}.")
    if max_tokens > settings.max_model_len:
        raise bad_parameter(
            "max_tokens",
            max_tokens,
            f"max_tokens={max_tokens} cannot be greater than max_model_len={settings.max_model_len}. "
            "Please request fewer output tokens.",
        )
    return max_tokens


def _read_messages(messages: list[dict[str, Any]]) -> tuple[str, str, tuple[MediaPart, ...]]:
    """Text of the last user message, text of the system messages, media of all of them."""
    prompt, system = "", []
    media: list[MediaPart] = []
    counts: dict[str, int] = {}
    for position, message in enumerate(messages):
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
        texts: list[str] = []
        for index, part in enumerate(parts):
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
                texts.append(part["text"])
            elif isinstance(part, dict):
                place = f"messages.{position}.content.{index}"
                media.append(read_part(part, index=index, place=place, counts=counts))
            else:
                raise BadChatRequest(f"messages.{position}.content.{index} is neither a text nor a content part.")
        text = "\n".join(texts)
        if message.get("role") == "system":
            system.append(text)
        else:
            prompt = text if message.get("role") == "user" or not prompt else prompt
    return prompt, "\n".join(system), tuple(media)


def _check_media_counts(media: tuple[MediaPart, ...], settings: EngineSettings) -> None:
    for kind, limit in settings.limit_mm_per_prompt.items():
        if sum(1 for part in media if part.kind == kind) > limit:
            raise BadChatRequest(
                f"At most {limit} {kind}(s) may be provided in one prompt. (parameter={kind})", param=kind
            )


def _stop_strings(body: dict[str, Any]) -> tuple[str, ...]:
    stop = body.get("stop")
    if isinstance(stop, str):
        stop = [stop]
    return tuple(text for text in stop or [] if isinstance(text, str) and text)


def _fps(video_kwargs: dict[str, Any]) -> float | None:
    """Frames a second. vLLM compares the value as it came, and answers with Python's words when it cannot."""
    backend = video_kwargs.get("backend")
    if backend is not None and backend not in CODEC_BACKENDS:
        options = ", ".join(repr(name) for name in CODEC_BACKENDS)
        raise BadChatRequest(f"Unknown video codec backend {backend!r}; valid options: {options}.")
    loader = video_kwargs.get("video_backend")
    if loader is not None and loader not in VIDEO_BACKENDS:
        raise BadChatRequest(f"Extension class {loader} not found", status=500, type="InternalServerError")
    fps = video_kwargs.get("fps")
    if fps is None:
        return None
    if not isinstance(fps, int | float):
        raise BadChatRequest(f"'<' not supported between instances of 'int' and '{type(fps).__name__}'")
    if not math.isfinite(fps):
        raise BadChatRequest(f"cannot convert float {fps} to integer")
    return float(fps)


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _max_pixels(processor_kwargs: dict[str, Any]) -> int | None:
    """Pixels a frame, from ``max_pixels`` or the newer spelling ``size.longest_edge``."""
    size = processor_kwargs.get("size")
    longest = size.get("longest_edge") if isinstance(size, dict) else None
    return _whole(processor_kwargs.get("max_pixels", longest))
