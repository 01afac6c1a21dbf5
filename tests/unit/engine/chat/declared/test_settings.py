"""What a declared engine may claim, and the names that ask for trouble."""

from __future__ import annotations

import pytest

from vision_bench.engine.chat.declared.settings import (
    DeclaredSettings,
    Failure,
    Latencies,
    Variant,
    read_failure,
    read_variant,
)
from vision_bench.errors import InvalidRequest

SERVED = ("qwen", "qwen-large")


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("qwen", Variant()),
        ("qwen-fail-503", Variant(failure=Failure(status=503))),
        ("qwen-truncate", Variant(failure=Failure(how="truncate"))),
        ("qwen-error-event", Variant(failure=Failure(how="error-event"))),
        ("qwen-hang", Variant(failure=Failure(how="hang"))),
        ("qwen-slow-2.5", Variant(slower=2.5)),
        ("qwen-large-slow-3", Variant(slower=3.0)),
    ],
)
def test_names_ask_for_failures_and_slowness(name: str, variant: Variant) -> None:
    """A served name, then what is wanted."""
    assert read_variant(name, SERVED) == variant


@pytest.mark.parametrize("name", ["nope", "qwen-fail-200", "qwen-fail-", "qwen-slow", "qwen-small", "fail-500", ""])
def test_other_names_are_unknown(name: str) -> None:
    """They are 404 at the server."""
    assert read_variant(name, SERVED) is None


@pytest.mark.parametrize("text", ["200", "abc", "", "5000"])
def test_failure_of_no_kind_is_refused_with_the_kinds(text: str) -> None:
    """The message lists what there is."""
    with pytest.raises(InvalidRequest, match="truncate, error-event, hang"):
        read_failure(text)


def test_wrong_numbers_are_refused_by_name() -> None:
    """Negative and not-a-number times, a rate over 1, no token."""
    with pytest.raises(InvalidRequest, match="decode_ms is -1"):
        Latencies(decode_ms=-1)
    with pytest.raises(InvalidRequest, match="prefill_ms is nan"):
        Latencies(prefill_ms=float("nan"))
    with pytest.raises(InvalidRequest, match=r"fail_rate is 1\.5"):
        DeclaredSettings(fail_rate=1.5)
    with pytest.raises(InvalidRequest, match="tokens is 0"):
        DeclaredSettings(tokens=0)
