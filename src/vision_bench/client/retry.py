"""When to try again, how long to wait, and when to stop trying for everybody's sake. No clock and no socket here."""

from __future__ import annotations

import email.utils
import random
from dataclasses import dataclass

from vision_bench.errors import BrokenStream, ConnectFailed, HttpFailure, UpstreamError

RETRIED_STATUSES = frozenset({502, 503})


class RetryBudget:
    """Retries shared by all calls of one client: at most a tenth of the requests, so that a sick server is not flooded.

    A bucket of tokens. Every request puts ``ratio`` of a token in, every retry takes a whole one out. The bucket starts
    with ``reserve`` tokens, so that a first call may be retried at all; what the first requests put in only pays that
    loan back. It holds at most ``capacity``, so that a calm hour does not pay for a storm.
    """

    def __init__(self, *, ratio: float = 0.1, reserve: float = 3.0, capacity: float = 50.0) -> None:
        self._ratio = ratio
        self._capacity = capacity
        self._tokens = reserve
        self._loan = reserve

    def note_request(self) -> None:
        """A new request (not a retry) is about to be sent."""
        repaid = min(self._loan, self._ratio)
        self._loan -= repaid
        self._tokens = min(self._capacity, self._tokens + self._ratio - repaid)

    def take(self) -> bool:
        """Whether one retry may be made; if so it is paid for."""
        if self._tokens < 1.0 - 1e-9:  # ten times a tenth is a hair under one
            return False
        self._tokens -= 1.0
        return True


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often one call is retried and how long it waits before each.

    Args:
        attempts: tries in all, the first included.
        base_seconds: the first wait is drawn between 0 and this ("full jitter").
        growth: each next bound is so many times the last one.
        max_wait_seconds: no wait is longer; a server that asks for more is not retried but reported.
    """

    attempts: int = 3
    base_seconds: float = 0.25
    growth: float = 2.0
    max_wait_seconds: float = 30.0

    def wait_seconds(self, failures: int, draw: random.Random, retry_after_seconds: float | None) -> float | None:
        """Seconds to wait after the ``failures``-th failure (1, 2, …), or None to give up.

        Retry-After is a floor: jitter is added on top, so that callers told the same second do not come back as one.
        """
        if failures >= self.attempts:
            return None
        jitter = draw.uniform(0.0, min(self.base_seconds * self.growth ** (failures - 1), self.max_wait_seconds))
        if retry_after_seconds is None:
            return jitter
        return retry_after_seconds + jitter if retry_after_seconds <= self.max_wait_seconds else None


@dataclass(frozen=True, slots=True)
class RetryRule:
    """Which failures of one kind of call are retried. A connection that was never made always is.

    Args:
        statuses: retried as they are.
        told_statuses: retried only where the server says when to come back.
        broken: whether a connection that broke before the answer began is retried. Not for a call that makes
            something each time it is heard.
    """

    policy: RetryPolicy = RetryPolicy()
    statuses: frozenset[int] = RETRIED_STATUSES
    told_statuses: frozenset[int] = frozenset()
    broken: bool = False

    def wait_seconds(self, problem: UpstreamError, failures: int, draw: random.Random) -> float | None:
        """Seconds to wait after the ``failures``-th failure, which was ``problem``; None when it is final."""
        told_seconds = problem.retry_after_seconds if isinstance(problem, HttpFailure) else None
        if isinstance(problem, HttpFailure):
            is_told = problem.status in self.told_statuses and told_seconds is not None
            is_retried = problem.status in self.statuses or is_told
        else:
            is_retried = isinstance(problem, ConnectFailed) or (self.broken and isinstance(problem, BrokenStream))
        return self.policy.wait_seconds(failures, draw, told_seconds) if is_retried else None


def read_retry_after(value: str | None, *, now_seconds: float) -> float | None:
    """A Retry-After header in seconds from now, never negative; None when absent or not understood.

    Args:
        value: seconds (``"5"``) or an HTTP date.
        now_seconds: Unix time, to which a date is compared.
    """
    if value is None:
        return None
    try:
        return max(0.0, float(value)) if value.strip().replace(".", "", 1).isdigit() else _from_date(value, now_seconds)
    except (TypeError, ValueError):
        return None


def _from_date(value: str, now_seconds: float) -> float:
    return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now_seconds)
