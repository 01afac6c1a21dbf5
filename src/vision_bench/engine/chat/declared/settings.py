"""What a declared engine claims to take, and the ways in which it fails on purpose."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vision_bench.errors import InvalidRequest

STREAM_FAILURES = ("truncate", "error-event", "hang")


@dataclass(frozen=True, slots=True)
class Latencies:
    """Declared times, ms. Those ``_per_token`` are added once for each visual (encoder) or prompt (prefill) token.

    ``jitter`` is the standard deviation of every time as a share of it: 0.1 spreads 100 ms as 100 ± 10.
    """

    preprocess_ms: float = 40.0
    encoder_ms: float = 60.0
    encoder_ms_per_token: float = 0.0
    prefill_ms: float = 50.0
    prefill_ms_per_token: float = 0.0
    decode_ms: float = 10.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not 0 <= getattr(self, name) < 1e9:
                raise InvalidRequest(f"{name} is {getattr(self, name)}; give a number of 0 or more")


@dataclass(frozen=True, slots=True)
class Traps:
    """Disturbances that a measuring tool has to see.

    ``stall_at``: token number (from 1) that comes ``stall_ms`` late; 1 delays the first.
    ``hiccup_at_seconds`` after the engine was made everything stands still for ``hiccup_seconds``.
    """

    stall_at: int | None = None
    stall_ms: float = 0.0
    hiccup_at_seconds: float | None = None
    hiccup_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """How one request fails: with an HTTP status before it begins, or half way through its answer."""

    status: int | None = None
    how: str | None = None


@dataclass(frozen=True, slots=True)
class DeclaredSettings:
    """A declared engine whole. ``tokens``: length of every answer; None lets answers end by themselves."""

    latencies: Latencies = Latencies()
    traps: Traps = Traps()
    tokens: int | None = None
    seed: int = 0
    fail_rate: float = 0.0
    fail_as: str = "500"
    served_model_names: tuple[str, ...] = ("qwen",)

    def __post_init__(self) -> None:
        if self.tokens is not None and self.tokens < 1:
            raise InvalidRequest(f"tokens is {self.tokens}; give 1 or more, or leave it out")
        if not 0 <= self.fail_rate <= 1:
            raise InvalidRequest(f"fail_rate is {self.fail_rate}; give a share between 0 and 1")
        read_failure(self.fail_as)


@dataclass(frozen=True, slots=True)
class Variant:
    """What a model name like ``qwen-fail-503`` or ``qwen-slow-3`` asks for."""

    failure: Failure | None = None
    slower: float = 1.0


def read_failure(text: str) -> Failure:
    """``500`` or another error status, ``truncate``, ``error-event`` or ``hang``.

    Raises:
        InvalidRequest: anything else.
    """
    if text in STREAM_FAILURES:
        return Failure(how=text)
    if re.fullmatch(r"[45]\d\d", text):
        return Failure(status=int(text))
    raise InvalidRequest(f"a failure is an error status (400-599) or one of {', '.join(STREAM_FAILURES)}, not {text!r}")


def read_variant(model: str, served: tuple[str, ...]) -> Variant | None:
    """The variant that ``model`` names: a served name, then ``-fail-<status>``, ``-truncate``, ``-error-event``,
    ``-hang`` or ``-slow-<factor>``. A served name itself is no variant; None for a name that nobody knows.
    """
    if model in served:
        return Variant()
    for name in sorted(served, key=len, reverse=True):
        suffix = model.removeprefix(f"{name}-")
        if suffix == model:
            continue
        if suffix in STREAM_FAILURES:
            return Variant(failure=Failure(how=suffix))
        if found := re.fullmatch(r"fail-([45]\d\d)", suffix):
            return Variant(failure=Failure(status=int(found[1])))
        if found := re.fullmatch(r"slow-(\d+(?:\.\d+)?)", suffix):
            return Variant(slower=float(found[1]))
    return None
