"""OpenAI-shaped chat as vLLM speaks it: build a body from parts; read text, usage, finish reason and error.

Nothing here opens a socket. Captured from vLLM 0.21 and 0.32; both shapes read the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from vision_bench.wire.shapes import content_in, label_in, object_in, objects_in, parse_json, shown, text_in, usage_in
from vision_bench.wire.sse import DONE, Event, EventParser

Json = dict[str, Any]
Outcome = Literal["ok", "error", "truncated"]


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
        reasoning=_reasoning(message),
        finish_reason=text_in(choice, "finish_reason"),
        usage=usage_in(body),
        model=label_in(body, "model"),
        response_id=label_in(body, "id"),
        stop_reason=_stop_reason(choice),
        tool_calls=tuple(objects_in(message, "tool_calls")),
    )


def _reasoning(message: Json) -> str | None:
    return content_in(message, "reasoning") or content_in(message, "reasoning_content")


def _stop_reason(choice: Json) -> str | int | None:
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


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of generated output: never empty, never only a role."""

    kind: Literal["text", "reasoning", "tool"]
    text: str


class ReadEvent(NamedTuple):
    """One event of a stream: the output it carried, and the usage that it alone told."""

    deltas: list[Delta]
    usage: Json | None


BROKEN_OFF = frozenset({"abort", "error"})
"""Finish reasons of a server that gave up in mid-answer: vLLM ends a stream so when it is told to stop."""


def plain_text(chunk: Json) -> str | None:
    """The text of a chunk that carries one piece of text of choice 0 and nothing else; None of any other.

    Nearly every chunk of a stream is one, and to look at it so takes a fifth of the time that looking for everything
    takes: while one chunk is read, no other can be stamped.
    """
    choices = chunk.get("choices")
    if type(choices) is not list or len(choices) != 1 or type(choices[0]) is not dict:
        return None
    choice = choices[0]
    if choice.get("index", 0) != 0 or choice.get("finish_reason") is not None or choice.get("stop_reason") is not None:
        return None
    delta = choice.get("delta")
    if type(delta) is not dict or len(delta) > ("role" in delta) + 1:
        return None
    text = delta.get("content")
    return text if type(text) is str and text else None


class StreamReader:
    """A chunked SSE chat stream as text, reasoning, usage and outcome.

    ``feed`` each network chunk; stop when ``finished`` (an open socket after ``[DONE]`` is nobody's wait); then
    ``close``. ``[DONE]`` alone is not success: vLLM sends it after an error event too. Only choice 0 is read.

    Args:
        parse: a quicker JSON parser that takes and refuses what ``parse_json`` does.

    Attributes:
        usage: the last usage object seen, or None. Tokens are counted there, never by chunks.
        receipt: the ``vision_bench`` object of an answer about live streams; None without one.
        error: the message of an error event, or of an event that was not JSON; None if there was none.
    """

    def __init__(self, *, parse: Callable[[str], Any] = parse_json) -> None:
        self._parser = EventParser()
        self._parse = parse
        self._pieces: dict[str, list[str]] = {"text": [], "reasoning": [], "tool": []}
        self._done = False
        self._has_choice = False
        self.usage: Json | None = None
        self.error: str | None = None
        self.finish_reason: str | None = None
        self.stop_reason: str | int | None = None
        self.model: str | None = None
        self.response_id: str | None = None
        self.receipt: Json | None = None

    @property
    def text(self) -> str:
        """Answer text so far."""
        return "".join(self._pieces["text"])

    @property
    def reasoning(self) -> str:
        """Reasoning text so far."""
        return "".join(self._pieces["reasoning"])

    @property
    def tool_arguments(self) -> str:
        """Arguments of tool calls so far, joined."""
        return "".join(self._pieces["tool"])

    @property
    def finished(self) -> bool:
        """Whether nothing that may still come can change the answer."""
        return self._done or self.error is not None

    @property
    def outcome(self) -> Outcome:
        """``truncated`` until the answer's end has been seen; then ``ok``, or ``error``."""
        if self.error is not None:
            return "error"
        return "ok" if self.finish_reason is not None or (self._done and self._has_choice) else "truncated"

    def feed(self, data: bytes) -> list[Delta]:
        """Pieces of output that ``data`` completes. What comes after the end is ignored."""
        return [delta for event in self.feed_events(data) for delta in event.deltas]

    def feed_events(self, data: bytes) -> list[ReadEvent]:
        """As ``feed``, event by event, for who counts and times them."""
        found: list[ReadEvent] = []
        if not self.finished:
            for event in self._parser.feed(data):
                found.append(self._take(event))
                if self.finished:
                    break
        return found

    def close(self) -> list[Delta]:
        """The connection ended: read an event that lacks only its blank line, and let half an event go."""
        deltas: list[Delta] = []
        for event in self._parser.close() if not self.finished else ():
            if event.data == DONE or self._object_in(event.data) is not None:
                deltas += self._take(event).deltas
        return deltas

    def reply(self) -> Reply:
        """What has been read, in the shape of a whole answer."""
        return Reply(
            text=self.text,
            reasoning=self.reasoning or None,
            finish_reason=self.finish_reason,
            usage=self.usage,
            model=self.model,
            response_id=self.response_id,
            stop_reason=self.stop_reason,
            tool_calls=({"function": {"arguments": self.tool_arguments}},) if self.tool_arguments else (),
        )

    def _take(self, event: Event) -> ReadEvent:
        if event.data == DONE:
            self._done = True
            return ReadEvent([], None)
        chunk = self._object_in(event.data)
        if chunk is None:
            self.error = f"an event is not JSON: {event.data[:200]}" if event.event != "error" else event.data
            return ReadEvent([], None)
        if chunk.get("error") or event.event == "error":
            self.error = error_message(chunk)
            return ReadEvent([], None)
        usage = usage_in(chunk)
        self.usage = usage or self.usage
        self.model = label_in(chunk, "model") or self.model
        self.response_id = label_in(chunk, "id") or self.response_id
        if isinstance(receipt := chunk.get("vision_bench"), dict):
            self.receipt = receipt
        if (text := plain_text(chunk)) is not None:
            self._has_choice = True
            self._pieces["text"].append(text)
            return ReadEvent([Delta("text", text)], usage)
        try:
            choices = [choice for choice in objects_in(chunk, "choices") if choice.get("index", 0) == 0]
            return ReadEvent([delta for choice in choices for delta in self._take_choice(choice)], usage)
        except ValueError as problem:
            self.error = f"an event is no chunk of a chat: {problem}"
            return ReadEvent([], usage)

    def _take_choice(self, choice: Json) -> list[Delta]:
        self._has_choice = True
        self.finish_reason = text_in(choice, "finish_reason") or self.finish_reason
        self.stop_reason = _stop_reason(choice) or self.stop_reason
        if self.finish_reason in BROKEN_OFF:
            self.error = f"the server broke the answer off (finish_reason {self.finish_reason})"
        delta = object_in(choice, "delta")
        found: list[Delta] = []
        if reasoning := _reasoning(delta):
            found.append(Delta("reasoning", reasoning))
        if text := content_in(delta, "content"):
            found.append(Delta("text", text))
        arguments = (text_in(object_in(call, "function"), "arguments") for call in objects_in(delta, "tool_calls"))
        found.extend(Delta("tool", text) for text in arguments if text)
        for piece in found:
            self._pieces[piece.kind].append(piece.text)
        return found

    def _object_in(self, data: str) -> Json | None:
        """An event's JSON object, or None."""
        try:
            value = self._parse(data)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None
