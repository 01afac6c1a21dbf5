"""What an answer says of itself: which frames it saw, and where its milliseconds went.

Every stage is the time between two named readings. Who takes a reading adds it under its name; a stage whose readings
are missing, or cannot be compared, is there with the reason and without a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import msgspec

from vision_bench.live.clocks import Elapsed, Offset, Problem, Stamp, elapsed
from vision_bench.live.ring import Frame

Json = dict[str, Any]
Place = Literal["publisher", "server", "upstream", "client", "between"]


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage runs from one reading to another; one that ``start`` and ``end`` leave empty is told by the upstream."""

    name: str
    start: str
    end: str
    place: Place


STAGES = (
    Stage("capture", "captured", "sent", "publisher"),
    Stage("transport", "sent", "arrived", "between"),
    Stage("jitter_buffer", "arrived", "released", "server"),
    Stage("decode", "released", "decoded", "server"),
    Stage("store", "decoded", "stored", "server"),
    Stage("request", "decided", "asked", "between"),
    Stage("selection", "asked", "selected", "server"),
    Stage("encode", "selected", "encoded", "server"),
    Stage("queue", "encoded", "permitted", "server"),
    Stage("upstream_preprocess", "", "", "upstream"),
    Stage("upstream_queue", "", "", "upstream"),
    Stage("upstream_prefill", "", "", "upstream"),
    Stage("upstream_decode", "", "", "upstream"),
    Stage("first_token", "permitted", "first_token", "server"),
    Stage("final_token", "first_token", "final_token", "server"),
    Stage("sse_transport", "final_token", "read", "between"),
    Stage("parse", "read", "parsed", "client"),
    Stage("validation", "parsed", "validated", "client"),
)
"""From the camera to an answer that may be used. The upstream's own stages lie within ``first_token`` and
``final_token``, so they are no further time. Up to ``store`` the readings are those of the newest chosen frame."""

TOTALS = (
    Stage("capture_to_first_token", "captured", "first_token", "between"),
    Stage("capture_to_answer", "captured", "validated", "between"),
    Stage("workflow", "decided", "validated", "client"),
)
"""How old the world is when an answer begins and when it may be used, and how long the user waited for it."""

STAMPS = frozenset({name for stage in (*STAGES, *TOTALS) for name in (stage.start, stage.end) if name})
REPORTED = tuple(stage.name for stage in STAGES if not stage.start)


@dataclass(frozen=True, slots=True)
class ChosenFrame:
    """One frame that the model was shown. ``age_ms``: how long the server had held it when it was chosen."""

    stream_id: str
    frame_index: int
    timestamp_ms: int
    age_ms: float | None
    width: int
    height: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class NewestFrame:
    """The newest frame that a stream held when frames of it were chosen, whether it was one of them or not."""

    stream_id: str
    frame_index: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Size:
    """Of a picture, in pixels."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Cache:
    """What the upstream told of its prompt cache; None where it told nothing."""

    thread_id: str | None = None
    cache_hit: bool | None = None
    cached_input_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """All that is known of one answer. ``reported_ms`` are durations on the upstream's own clock, by stage.

    Raises:
        ValueError: a reading or a duration that no stage has.
    """

    frames: tuple[ChosenFrame, ...] = ()
    newest: tuple[NewestFrame, ...] = ()
    """Of each stream that was asked about: a segment's last frame lies behind it by up to ``1 / max_fps``."""
    stamps: Mapping[str, Stamp] = field(default_factory=dict)
    offsets: tuple[Offset, ...] = ()
    reported_ms: Mapping[str, float] = field(default_factory=dict)
    payload_bytes: int | None = None
    resized: Size | None = None
    """What the model saw."""
    visual_tokens: int | None = None
    cache: Cache = Cache()

    def __post_init__(self) -> None:
        unknown = [*(set(self.stamps) - STAMPS), *(set(self.reported_ms) - set(REPORTED))]
        if unknown:
            raise ValueError(f"{', '.join(sorted(unknown))}: no stage has such a reading")


def chosen_frame(stream_id: str, frame: Frame, *, selected_ns: int) -> ChosenFrame:
    """``frame`` as a receipt shows it; ``selected_ns`` is on the clock of ``frame.received_ns``."""
    age_ns = selected_ns - frame.received_ns
    return ChosenFrame(
        stream_id=stream_id,
        frame_index=frame.index,
        timestamp_ms=frame.stream_ms,
        age_ms=age_ns / 1e6 if age_ns >= 0 else None,
        width=frame.width,
        height=frame.height,
        size_bytes=len(frame.jpeg),
    )


def cache_of(usage: Mapping[str, Any] | None, *, thread_id: str | None) -> Cache:
    """The cache fields from an OpenAI-shaped ``usage``: vLLM tells cached tokens when it is started to do so."""
    details = (usage or {}).get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    if not isinstance(cached, int) or isinstance(cached, bool) or cached < 0:
        return Cache(thread_id)
    return Cache(thread_id, cached > 0, cached)


def visual_tokens_of(usage: Mapping[str, Any] | None) -> int | None:
    """What pictures cost, as vLLM counts them by kind in ``usage``; None where it does not."""
    details = (usage or {}).get("prompt_tokens_details")
    by_kind = details.get("multimodal_tokens") if isinstance(details, dict) else None
    counts = [by_kind.get(kind) for kind in ("image", "video")] if isinstance(by_kind, dict) else []
    known = [count for count in counts if isinstance(count, int) and not isinstance(count, bool) and count >= 0]
    return sum(known) if known else None


def reported_of(metrics: Mapping[str, Any] | None) -> dict[str, float]:
    """The upstream's own stages from the ``metrics`` of an answer of vLLM with ``--enable-per-request-metrics``.

    Its time to the first token begins when the request is scheduled: neither preprocessing nor the queue is in it.
    """
    told = {stage: _milliseconds((metrics or {}).get(name)) for stage, name in _METRICS.items()}
    return {stage: ms for stage, ms in told.items() if ms is not None}


_METRICS = {
    "upstream_queue": "queue_time_ms",
    "upstream_prefill": "time_to_first_token_ms",
    "upstream_decode": "generation_time_ms",
}


def _milliseconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def time_of(receipt: Receipt, stage: Stage) -> Elapsed:
    """How long ``stage`` took, as far as can be said; never negative."""
    if stage.start:
        return elapsed(receipt.stamps.get(stage.start), receipt.stamps.get(stage.end), receipt.offsets)
    told_ms = receipt.reported_ms.get(stage.name)
    if told_ms is None:
        return Elapsed(None, None, "no_stamp")
    if not (math.isfinite(told_ms) and told_ms >= 0):
        return Elapsed(None, None, "out_of_order")
    return Elapsed(round(told_ms * 1e6), round(told_ms * 1e6))


@dataclass(frozen=True, slots=True)
class StageTime:
    """A stage as it is shown: ``ms`` within one clock; across clocks a range alone, for one number hides its bound."""

    stage: str
    place: Place
    clocks: tuple[str, ...]
    ms: float | None
    low_ms: float | None
    high_ms: float | None
    problem: Problem | None


def stage_times(receipt: Receipt, stages: tuple[Stage, ...] = STAGES) -> list[StageTime]:
    """Each of ``stages`` with its time, or with the reason why there is none."""
    return [_shown(receipt, stage) for stage in stages]


def receipt_bodies(receipt: Receipt) -> Json:
    """The two extension keys of an answer: ``vision_bench``, all of it, and ``overshoot`` with the cache alone."""
    ours: Json = msgspec.to_builtins(receipt)
    ours["reported_ms"] = {name: ms for name, ms in receipt.reported_ms.items() if math.isfinite(ms)}  # JSON has no NaN
    ours["stages"] = msgspec.to_builtins(stage_times(receipt))
    ours["totals"] = msgspec.to_builtins(stage_times(receipt, TOTALS))
    return {"vision_bench": ours, "overshoot": {"cache": ours["cache"]}}


def read_receipt(body: object) -> Receipt:
    """A receipt from the ``vision_bench`` object of an answer, so that a client can add its own readings.

    Stages are computed from readings and not read; readings that are not known here are left out.

    Raises:
        ValueError: not such an object.
    """
    if not isinstance(body, dict):
        raise ValueError(f"a receipt is an object, not {type(body).__name__}")
    known = {item.name: body[item.name] for item in fields(Receipt) if item.name in body}
    for name, allowed in (("stamps", STAMPS), ("reported_ms", REPORTED)):
        if isinstance(known.get(name), dict):
            known[name] = {key: value for key, value in known[name].items() if key in allowed}
    try:
        return msgspec.convert(known, Receipt)
    except msgspec.ValidationError as problem:
        raise ValueError(f"a receipt of another shape: {problem}") from problem


def _shown(receipt: Receipt, stage: Stage) -> StageTime:
    took = time_of(receipt, stage)
    is_exact = took.low_ns is not None and took.low_ns == took.high_ns
    low_ms, high_ms = (None if ns is None else ns / 1e6 for ns in (took.low_ns, took.high_ns))
    return StageTime(
        stage=stage.name,
        place=stage.place,
        clocks=_clocks(receipt, stage),
        ms=low_ms if is_exact else None,
        low_ms=low_ms,
        high_ms=high_ms,
        problem=took.problem,
    )


def _clocks(receipt: Receipt, stage: Stage) -> tuple[str, ...]:
    if not stage.start:
        return ("upstream",) if stage.name in receipt.reported_ms else ()
    stamps = [receipt.stamps.get(stage.start), receipt.stamps.get(stage.end)]
    return tuple(dict.fromkeys(stamp.clock for stamp in stamps if stamp is not None))
