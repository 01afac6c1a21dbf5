"""What the chat server asks of a model: look at the request once, then give the answer token by token.

The server owns the wire, admission, stop strings, ``max_tokens`` and every clock reading; a model owns perception
and text. The life of a request is vLLM's own::

    body read > parse > model.prepare  > wait for a slot > model.generate > answer
    (arrived_ns)        (preprocess)     (queue)           (prefill, decode)

so that time to first token includes media decoding, and queue time does not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

MediaKind = Literal["video", "image", "audio"]


@dataclass(frozen=True, slots=True)
class MediaPart:
    """One piece of media of the request, base64 already undone.

    ``frames`` holds the JPEGs of ``data:video/jpeg;base64,F1,F2,…`` in order, and ``data`` is then empty.
    """

    kind: MediaKind
    media_type: str
    data: bytes
    frames: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request that passed every check that needs no media.

    ``prompt`` is the text of the last user message, its text parts joined with a newline; ``system`` the system
    messages, joined the same way. ``media`` keeps the order in which the parts were sent, over all messages.
    ``schema`` is the JSON schema of ``response_format`` (or of ``structured_outputs``); ``json_object`` asks for any
    JSON object. ``choices`` and ``regex`` come from ``structured_outputs``. ``fps`` and ``num_frames`` are those of
    ``media_io_kwargs.video``: None when not sent; ``max_pixels`` and ``use_audio_in_video`` those of
    ``mm_processor_kwargs``. ``arrived_ns`` is ``time.monotonic_ns`` when the last byte of the body had been read.
    ``raw`` is the body as parsed, for what has no field here.
    """

    request_id: str
    model: str
    prompt: str
    system: str
    media: tuple[MediaPart, ...]
    max_tokens: int
    temperature: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    schema: dict[str, Any] | None = None
    json_object: bool = False
    choices: tuple[str, ...] = ()
    regex: str | None = None
    fps: float | None = None
    num_frames: int | None = None
    max_pixels: int | None = None
    use_audio_in_video: bool = False
    n: int = 1
    stream: bool = False
    arrived_ns: int = 0
    raw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The request as the model holds it after looking at the media.

    ``multimodal_tokens`` counts by kind, as vLLM's usage does (``{"video": 921, "audio": 921}``), and is empty for a
    text prompt. ``prompt_tokens`` includes them. ``state`` is the model's own; the server never looks. ``stages_ms``
    is filled by the model while it works (``{"decode": 12.1}``) and is served at ``GET /truth``.
    """

    prompt_tokens: int
    multimodal_tokens: dict[str, int] = field(default_factory=dict)
    state: Any = None
    stages_ms: dict[str, float] = field(default_factory=dict)


class Token(NamedTuple):
    """A piece of the answer that leaves as one event of a stream and counts as one completion token.

    ``is_last`` must be true on the last one: vLLM's finish reason rides on the last chunk with content, so the
    server cannot wait and see.
    """

    text: str
    is_last: bool = False


class BadChatRequest(Exception):
    """A request that vLLM answers with an error status; becomes ``{"error": {message, type, param, code}}``."""

    def __init__(
        self, message: str, *, status: int = 400, type: str = "BadRequestError", param: str | None = None
    ) -> None:
        self.status = status
        self.message = message
        self.type = type
        self.param = param
        super().__init__(message)


class ChatModel(Protocol):
    """What ``create_engine`` serves.

    Both calls run on the event loop: work that takes longer than a millisecond belongs in ``asyncio.to_thread``.
    A client that leaves cancels whichever await the model is in; a model must let ``CancelledError`` through.
    """

    name: str
    """What it is, for logs and ``GET /truth``: ``baseline`` or ``declared``. Not the served model name."""

    async def prepare(self, request: ChatRequest) -> Prepared:
        """Open and look at the media, count tokens. Runs before the request has a slot.

        Raises:
            BadChatRequest: media that does not open (``Could not open video stream``), a missing sound track
                (``No audio stream found.``).
            InvalidMedia: the same, in this project's words; answered with 400.
        """
        ...

    def generate(self, request: ChatRequest, prepared: Prepared, *, sample: int = 0) -> AsyncIterator[Token]:
        """The answer's tokens, each yielded when it is due; at least one, the last with ``is_last``.

        ``sample`` is the index among ``n`` choices. The server stops iterating at ``max_tokens`` or a stop string,
        and closes the iterator when the client leaves.
        """
        ...


def pieces(text: str) -> list[str]:
    """``text`` cut the way a tokenizer roughly would: a word with the space before it, or up to 4 letters of it.

    ``"".join(pieces(text)) == text``. An empty text has no piece.
    """
    out: list[str] = []
    for char in text:
        starts_word = char.isspace() or (bool(out) and not out[-1][-1].isalnum() and not out[-1][-1].isspace())
        if not out or starts_word or len(out[-1].lstrip()) >= 4:
            out.append(char)
        else:
            out[-1] += char
    return out
