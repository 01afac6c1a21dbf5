"""What is tried again, what is asked elsewhere, and what is final, of calls about live streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vision_bench.client.retry import RetryPolicy, RetryRule
from vision_bench.errors import HttpFailure, InvalidRequest, UpstreamError, VisionBenchError
from vision_bench.wire.chat import Json
from vision_bench.wire.shapes import parse_json

CREATE = RetryRule(RetryPolicy(attempts=4, base_seconds=1.0), frozenset({503}), frozenset({429}))
"""A connection that broke is no reason to create again: the stream may be there, and nobody would delete it."""
LOOK = RetryRule(RetryPolicy(attempts=4, base_seconds=1.0), frozenset({503}), frozenset({429}), broken=True)
KEEP_ALIVE = RetryRule(
    RetryPolicy(attempts=4, base_seconds=1.0, growth=1.0), frozenset({503}), frozenset({429}), broken=True
)
ASK = RetryRule(RetryPolicy(attempts=4, base_seconds=0.5), frozenset({502, 503}), frozenset({429}), broken=True)
"""502 is the connection between the gateway and the model."""

_UNAVAILABLE = frozenset({"model_unavailable", "upstream_request_failed"})
_MAY_PASS = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class Unavailable:
    """What to do when the model that is asked for cannot be had, after the retries.

    ``error`` raises what happened. ``wait`` waits until the gateway lists it as ready and asks again. ``fallback``
    asks ``model`` instead, if that one is ready: name one that you have tested with your questions.

    Raises:
        InvalidRequest: a fallback without a model, or a model without a fallback.
    """

    do: Literal["error", "wait", "fallback"] = "error"
    model: str | None = None
    wait_seconds: float = 60.0

    def __post_init__(self) -> None:
        if (self.do == "fallback") != (self.model is not None):
            raise InvalidRequest(f"{self.do!r} with model {self.model!r}; a fallback names a model, nothing else does")


def code_of(problem: HttpFailure) -> str | None:
    """The gateway's one word for a failed question; None where it told none."""
    try:
        told = parse_json(problem.body)
    except ValueError:
        return None
    error = _object(_object(told, "detail"), "error") or _object(told, "error")
    code = error.get("code")
    return code if isinstance(code, str) else None


def is_unavailable(problem: UpstreamError) -> bool:
    """Whether the model cannot be had now, though the gateway is there."""
    return isinstance(problem, HttpFailure) and code_of(problem) in _UNAVAILABLE


def is_fatal(problem: VisionBenchError) -> bool:
    """Whether the same question would fail for ever: it is wrong, forbidden, or its stream is gone.

    A frame that has not come, a segment that is still empty, too many requests, and whatever the server or the network
    did are not.
    """
    if not isinstance(problem, HttpFailure):
        return not isinstance(problem, UpstreamError)
    if problem.status in _MAY_PASS or code_of(problem) == "segment_empty":
        return False
    return 400 <= problem.status < 500


def _object(value: object, name: str) -> Json:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}
