"""client.retry: how often, how long, and never more than a tenth."""

from __future__ import annotations

import random

import pytest

from vision_bench.client.retry import RetryBudget, RetryPolicy, read_retry_after

NOW = 1_700_000_000.0


@pytest.mark.parametrize(("requests", "most"), [(1, 3), (100, 10), (1000, 100)])
def test_budget_is_a_tenth_of_the_requests(requests: int, most: int) -> None:
    """A sick server gets at most 10 % more calls; only a short run may use the reserve of three."""
    budget = RetryBudget(capacity=1e9)
    for _ in range(requests):
        budget.note_request()
    assert sum(budget.take() for _ in range(2 * requests + 10)) == most


def test_a_calm_hour_does_not_pay_for_a_storm() -> None:
    """The bucket is bounded."""
    budget = RetryBudget(capacity=50)
    for _ in range(100_000):
        budget.note_request()
    assert sum(budget.take() for _ in range(200)) == 50


def test_waits_grow_are_jittered_and_end() -> None:
    """Full jitter under a bound that doubles; the third failure is final."""
    policy = RetryPolicy(attempts=3, base_seconds=0.25)
    first = [policy.wait_seconds(1, random.Random(seed), None) for seed in range(200)]
    second = [policy.wait_seconds(2, random.Random(seed), None) for seed in range(200)]
    assert all(wait is not None and 0 <= wait <= 0.25 for wait in first) and len(set(first)) > 100
    assert all(wait is not None and 0 <= wait <= 0.5 for wait in second)
    assert max(wait for wait in second if wait is not None) > 0.25
    assert policy.wait_seconds(3, random.Random(0), None) is None


def test_retry_after_is_a_floor_and_too_long_a_wait_gives_up() -> None:
    """What the server asks for is honoured or reported, never undercut."""
    policy = RetryPolicy(base_seconds=0.25, max_wait_seconds=30)
    wait = policy.wait_seconds(1, random.Random(1), 7.0)
    assert wait is not None and 7.0 <= wait <= 7.25
    assert policy.wait_seconds(1, random.Random(1), 31.0) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("5", 5.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:13:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("", None),
    ],
)
def test_retry_after_in_both_of_its_forms(value: str | None, seconds: float | None) -> None:
    """Seconds, an HTTP date (past dates mean now), and rubbish that means nothing."""
    assert read_retry_after(value, now_seconds=NOW) == seconds
