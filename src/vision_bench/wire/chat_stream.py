"""A chat answer that comes as a stream of events: text, reasoning, usage, and whether it came to its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from vision_bench.wire.chat import Json, Reply, error_message, reasoning_in, stop_reason_in
from vision_bench.wire.shapes import content_in, label_in, object_in, objects_in, parse_json, text_in, usage_in
from vision_bench.wire.sse import DONE, Event, EventParser

Outcome = Literal["ok", "error", "truncated"]


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
        self.stop_reason = stop_reason_in(choice) or self.stop_reason
        if self.finish_reason in BROKEN_OFF:
            self.error = f"the server broke the answer off (finish_reason {self.finish_reason})"
        delta = object_in(choice, "delta")
        found: list[Delta] = []
        if reasoning := reasoning_in(delta):
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
