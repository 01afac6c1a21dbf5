"""A question about a live stream: what is asked, and about the newest frame, the last seconds, or a stretch of time."""

from __future__ import annotations

from dataclasses import dataclass, field

from vision_bench.answers.analysis import Question
from vision_bench.client.live_rules import Unavailable
from vision_bench.errors import InvalidRequest
from vision_bench.live.references import MAX_FPS, MAX_WAIT_MS, Anchor, FrameReference, SegmentReference, reference_url
from vision_bench.wire.chat import Json, chat_body, image_part, json_schema_format, text_part, user_message, video_part


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest frame. ``wait_ms``: how long to wait for a first one."""

    wait_ms: int = 0

    def part(self, stream_id: str) -> Json:
        """As a part of a chat body."""
        return image_part(reference_url(FrameReference(stream_id, Anchor("frame_index", -1), wait_ms=self.wait_ms)))


@dataclass(frozen=True, slots=True)
class Trailing:
    """The last ``seconds`` up to the newest frame, at most ``max_fps`` frames a second of them.

    Raises:
        InvalidRequest: no time at all.
    """

    seconds: float
    max_fps: float = 1.0
    wait_ms: int = 0

    def __post_init__(self) -> None:
        if not self.seconds >= 0.001:
            raise InvalidRequest(f"the last {self.seconds:g} s hold no frame; ask for 0.001 s or more")

    def part(self, stream_id: str) -> Json:
        """As a part of a chat body."""
        start = Anchor("offset_ms", -round(self.seconds * 1000))
        return video_part(reference_url(SegmentReference(stream_id, start, max_fps=self.max_fps, wait_ms=self.wait_ms)))


@dataclass(frozen=True, slots=True)
class Absolute:
    """From ``start_ms`` up to but without ``end_ms`` on the stream's clock, which is 0 at its first frame.

    Raises:
        InvalidRequest: it ends at or before its start, or starts before the stream.
    """

    start_ms: int
    end_ms: int
    max_fps: float = 1.0
    wait_ms: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.start_ms < self.end_ms:
            raise InvalidRequest(f"{self.start_ms} to {self.end_ms} ms is no stretch of a stream's time")

    def part(self, stream_id: str) -> Json:
        """As a part of a chat body."""
        start, end = Anchor("timestamp_ms", self.start_ms), Anchor("timestamp_ms", self.end_ms)
        return video_part(
            reference_url(SegmentReference(stream_id, start, end, max_fps=self.max_fps, wait_ms=self.wait_ms))
        )


Window = Latest | Trailing | Absolute


@dataclass(frozen=True, slots=True)
class LiveQuestion:
    """What is asked, of which model, about which part of a stream.

    Args:
        question: a prompt, or one with a schema that the answer is held to.
        unavailable: what to do when ``model`` cannot be had.
        thread_id: questions with one go to one server, whose prompt cache may know them.

    Raises:
        InvalidRequest: a window that no gateway takes.
    """

    question: Question | str
    window: Window = field(default_factory=Latest)
    model: str = "qwen"
    unavailable: Unavailable = field(default_factory=Unavailable)
    max_tokens: int | None = None
    temperature: float | None = None
    thread_id: str | None = None

    def __post_init__(self) -> None:
        window = self.window
        if not 0 <= window.wait_ms <= MAX_WAIT_MS:
            raise InvalidRequest(f"wait_ms is {window.wait_ms}; it may be 0 to {MAX_WAIT_MS}")
        if not isinstance(window, Latest) and not 0 < window.max_fps <= MAX_FPS:
            raise InvalidRequest(f"max_fps is {window.max_fps:g}; it may be above 0 and up to {MAX_FPS}")

    @property
    def asked(self) -> Question:
        """What the answer is judged against."""
        return Question(self.question, None) if isinstance(self.question, str) else self.question

    def body(self, stream_id: str, *, model: str) -> Json:
        """The chat body, answered as a stream of events. Frames stand before the prompt, as in vLLM's own examples."""
        asked = self.asked
        return chat_body(
            model=model,
            messages=[user_message([self.window.part(stream_id), text_part(asked.prompt)])],
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            response_format=None if asked.schema is None else json_schema_format(asked.schema_name, asked.schema),
            stream=True,
            extra={} if self.thread_id is None else {"thread_id": self.thread_id},
        )
