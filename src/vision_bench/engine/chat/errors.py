"""vLLM's error answers: statuses, types and words, as a captured 0.32.0 gives them."""

from __future__ import annotations

from typing import Any

from vision_bench.engine.chat.model import BadChatRequest
from vision_bench.wire.chat import error_body

BUSY = "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."


class BrokenAnswer(Exception):
    """An answer that a model breaks on purpose after it began.

    ``error``: an error event, then ``[DONE]``, as vLLM does (500 where nothing was sent yet).
    ``truncate``: the connection is cut, without ``[DONE]``.
    """

    def __init__(self, how: str, message: str) -> None:
        self.how = how
        super().__init__(message)


class ConnectionCut(Exception):
    """Raised out of the application so that the server closes the socket without a word."""


def body_of(problem: BadChatRequest) -> dict[str, Any]:
    """The JSON body of a refused request."""
    return error_body(problem.message, type=problem.type, code=problem.status, param=problem.param)


def internal_error(message: str) -> dict[str, Any]:
    """The JSON body of a 500, and of the error event inside a stream."""
    return error_body(message, type="InternalServerError", code=500)


def unknown_model(name: str, aliases: tuple[str, ...]) -> BadChatRequest:
    """404, as vLLM words it."""
    message = f"The model `{name}` does not exist. Valid aliases: {', '.join(aliases)}."
    return BadChatRequest(message, status=404, type="NotFoundError", param="model")


def busy() -> BadChatRequest:
    """503; vLLM sends no Retry-After with it."""
    return BadChatRequest(BUSY, status=503, type="Service Unavailable")


def bad_parameter(name: str, value: object, complaint: str) -> BadChatRequest:
    """400 for a field of a readable body whose value cannot be used."""
    return BadChatRequest(f"{complaint} (parameter={name}, value={value})", param=name)


def invalid_body(problems: list[dict[str, Any]], *, first: str | None = None) -> BadChatRequest:
    """400 for a body of the wrong shape. ``problems`` are pydantic's: type, loc, msg, input, ctx.

    ``first`` is the parameter the answer names; the place of the first problem where not given.
    """
    plural = "" if len(problems) == 1 else "s"
    lines = "\n".join(f"  {problem}" for problem in problems)
    param = first if first is not None else str(problems[0]["loc"])
    return BadChatRequest(f"{len(problems)} validation error{plural}:\n{lines}", type="Bad Request", param=param)


def unsupported_content_type() -> BadChatRequest:
    """400 for a body that does not call itself JSON."""
    message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
    return BadChatRequest(message, type="Bad Request")


def unknown_part(index: int, part: dict[str, Any]) -> BadChatRequest:
    """400 for a content part of a type nobody knows: pydantic's text for the four it tried, links and all."""
    given = part.get("type")
    what = f"input_value={given!r}, input_type={type(given).__name__}"
    tried = (
        ("ChatCompletionContentPartTextParam", "text", "text"),
        ("ChatCompletionContentPartImageParam", "image_url", "image_url"),
        ("ChatCompletionContentPartInputAudioParam", "input_audio", "input_audio"),
        ("File", "file", "file"),
    )
    more = "    For further information visit https://errors.pydantic.dev/2.14/v/"
    lines: list[str] = []
    for name, field, literal in tried:
        if field not in part:
            lines += [
                f"{index}.{name}.{field}",
                f"  Field required [type=missing, input_value={part!r:.100}, input_type=dict]",
                f"{more}missing",
            ]
        lines += [
            f"{index}.{name}.type",
            f"  Input should be '{literal}' [type=literal_error, {what}]",
            f"{more}literal_error",
        ]
    count = sum(1 for line in lines if line.startswith(f"{index}."))
    return BadChatRequest("\n".join([f"{count} validation errors for ValidatorIterator", *lines]))


def input_too_long(prompt_tokens: int, limit: int, *, has_media: bool) -> BadChatRequest:
    """400 for a prompt over the context length; text is refused while tokenizing, media after expansion."""
    if has_media:
        return BadChatRequest(f"Input length ({prompt_tokens}) exceeds model's maximum context length ({limit}).")
    return BadChatRequest(
        f"This model's maximum context length is {limit} tokens. However, your prompt contains at least {limit + 1} "
        "input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the "
        f"input prompt. (parameter=input_tokens, value={limit + 1})",
        param="input_tokens",
    )
