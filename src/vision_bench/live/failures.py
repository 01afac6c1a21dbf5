"""What a caller of the stream API is told: one code, its status, and the two bodies in which a failure travels.

Codes and statuses are those of the v1beta catalogue; where its pages contradict each other, docs/streams.md says what
was chosen.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from vision_bench.errors import CallerError

Code = Literal[
    "stream_url_invalid",
    "query_param_invalid",
    "segment_invalid",
    "stream_not_found",
    "stream_unauthorized",
    "segment_empty",
    "frame_not_yet_produced",
    "frame_evicted",
    "stream_limit",
    "streams_full",
    "source_refused",
    "source_failed",
]


class Answer(NamedTuple):
    """How a code is answered: the HTTP status and the error's class."""

    status: int
    type: str


ANSWERS: dict[Code, Answer] = {
    "stream_url_invalid": Answer(400, "stream_error"),
    "query_param_invalid": Answer(400, "stream_error"),
    "segment_invalid": Answer(400, "stream_error"),
    "stream_not_found": Answer(404, "stream_error"),
    "stream_unauthorized": Answer(401, "stream_error"),
    "segment_empty": Answer(404, "stream_error"),
    "frame_not_yet_produced": Answer(409, "stream_error"),
    "frame_evicted": Answer(410, "stream_error"),
    "stream_limit": Answer(429, "rate_limit_error"),
    "streams_full": Answer(503, "internal_error"),
    "source_refused": Answer(422, "stream_error"),
    "source_failed": Answer(422, "stream_error"),
}


class StreamFailure(CallerError):
    """A stream, frame or segment that cannot be had. ``code`` says why, in one word; the message says what to do."""

    outcome = "stream_error"

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The HTTP status of its answer."""
        return ANSWERS[self.code].status

    def chat_body(self) -> dict[str, Any]:
        """The body of a chat request that failed."""
        error = {"message": self.message, "type": ANSWERS[self.code].type, "code": self.code}
        return {"detail": {"error": error}}

    def stream_body(self) -> dict[str, Any]:
        """The body of a request to ``/streams`` that failed."""
        return {"detail": self.message}


def shown(value: str) -> str:
    """What the caller sent, quoted and short enough to stand in a message."""
    return repr(value if len(value) <= 60 else value[:57] + "...")
