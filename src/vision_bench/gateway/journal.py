"""When a request waited and what it called, written down as it happens: spans are made of it when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Subject = Literal["room", "permit"]


@dataclass(slots=True)
class Wait:
    """One wait. Times are the monotonic clock's.

    Attributes:
        request_id: the request's, or that of a batch's item, as vLLM is told it.
        error: the failure it ended with, in one word.
    """

    request_id: str
    subject: Subject
    began_ns: int
    ended_ns: int
    error: str | None


@dataclass(slots=True)
class Call:
    """One try at one vLLM, from its permit to its end. Times are the monotonic clock's.

    Attributes:
        traceparent: the header that makes vLLM's spans children of this call's.
        url: the /v1 endpoint.
        resend_count: how often it had been sent elsewhere before.
        status: of vLLM's answer; None: none came.
        error: the failure it ended with, in one word; an error status is none of these.
    """

    request_id: str
    span_id: int
    traceparent: str
    url: str
    resend_count: int
    began_ns: int
    ended_ns: int
    status: int | None = None
    error: str | None = None

    def end(self, now_ns: int, status: int | None, error: str | None) -> None:
        """It is over."""
        self.ended_ns, self.status, self.error = now_ns, status, error


class Journal:
    """Of one request, or of one item of a batch: its items share the two lists.

    Attributes:
        waits, calls: in the order in which waits ended and calls began.
    """

    __slots__ = ("_make_span_id", "_request_id", "_traceparent", "calls", "waits")

    def __init__(self, request_id: str, *, traceparent: Callable[[int], str], make_span_id: Callable[[], int]) -> None:
        self._request_id = request_id
        self._traceparent = traceparent
        self._make_span_id = make_span_id
        self.waits: list[Wait] = []
        self.calls: list[Call] = []

    def of_item(self, request_id: str) -> Journal:
        """The same journal, for what is done under another id."""
        journal = Journal(request_id, traceparent=self._traceparent, make_span_id=self._make_span_id)
        journal.waits, journal.calls = self.waits, self.calls
        return journal

    def waited(self, subject: Subject, began_ns: int, ended_ns: int, problem: BaseException | None) -> None:
        """A wait is over. ``problem``: what is being raised."""
        self.waits.append(Wait(self._request_id, subject, began_ns, ended_ns, word_of(problem)))

    def call(self, url: str, now_ns: int, *, resend_count: int) -> Call:
        """A call begins."""
        span_id = self._make_span_id()
        call = Call(self._request_id, span_id, self._traceparent(span_id), url, resend_count, now_ns, now_ns)
        self.calls.append(call)
        return call


def word_of(problem: BaseException | None) -> str | None:
    """A failure in one word. Not the exception itself: its frames would hold bodies."""
    if problem is None:
        return None
    outcome = getattr(problem, "outcome", None)
    if isinstance(outcome, str):
        return outcome
    return "cancelled" if isinstance(problem, asyncio.CancelledError | GeneratorExit) else "internal_error"
