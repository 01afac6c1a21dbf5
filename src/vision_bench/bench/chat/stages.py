"""The path of a request from camera to checked answer as a table of stages, each with who tells it.

A stage that nobody tells stands there as unknown: a latency that is left out of a table looks like none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from vision_bench.bench.chat.formulas import between_ms, first_ns
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.wire.prometheus import Histogram, Page, difference

Json = dict[str, Any]


class Stage(NamedTuple):
    """One stage.

    Attributes:
        source: who tells it, where records do.
        absent: why nobody told it, where nobody did.
        of: its time in one record, ms; None where no record can tell it.
        metric: the server's histogram that tells it for the step as a whole.
    """

    name: str
    source: str
    absent: str
    of: Callable[[ChatRecord], float | None] | None = None
    metric: str | None = None


def _told(name: str) -> Callable[[ChatRecord], float | None]:
    return lambda record: record.server_ms.get(name)


def _streaming_ms(record: ChatRecord) -> float | None:
    return between_ms(first_ns(record), record.k_ns[-1] if record.k_ns else None)


def _gateway_itself_ms(record: ChatRecord) -> float | None:
    """From the last byte sent to the answer's headers, without the gateway's queue and the upstream: its own work, and
    both ways of the network."""
    queue, upstream = record.server_ms.get("queue_ms"), record.server_ms.get("upstream_ms")
    total = between_ms(record.bod_ns, record.rsp_ns)
    return None if queue is None or upstream is None or total is None else max(0.0, total - queue - upstream)


_OUTSIDE = "not part of this workload"
_OUTSIDE_OR_RANGE = "not part of this workload, or a range between two clocks (receipts)"
_BEFORE = "done before the clock starts"
_UNSEEN = "no answer got that far"
_SILENT = "the server does not tell"
_NO_EVENTS = "no events were streamed"

STAGES = (
    Stage("frame_capture", "receipt: the camera's clock", _OUTSIDE, _told("receipt_capture_ms")),
    Stage("video_transport", "receipt", _OUTSIDE_OR_RANGE, _told("receipt_transport_ms")),
    Stage("selection", "client", _BEFORE, lambda record: between_ms(record.dec_ns, record.sel_ns)),
    Stage("encoding", "client", _BEFORE, lambda record: between_ms(record.sel_ns, record.ser_ns)),
    Stage(
        "wait_in_client", "client", _UNSEEN, lambda record: between_ms(record.ser_ns or record.due_ns, record.hdr_ns)
    ),
    Stage("upload", "client", _UNSEEN, lambda record: between_ms(record.hdr_ns, record.bod_ns)),
    Stage("gateway_queue", "Server-Timing", _SILENT, _told("queue_ms")),
    Stage("gateway_upstream", "Server-Timing", _SILENT, _told("upstream_ms")),
    Stage("gateway_itself", "client less Server-Timing", _SILENT, _gateway_itself_ms),
    Stage("decoding_and_preprocessing", "paired difference before the run: media less text", _SILENT),
    Stage("scheduling", "per-request metrics", _SILENT, _told("queue_time_ms"), "vllm:request_queue_time_seconds"),
    Stage("prefill", "", _SILENT, None, "vllm:request_prefill_time_seconds"),
    Stage("sent_to_first_event", "client", _NO_EVENTS, lambda record: between_ms(record.bod_ns, first_ns(record))),
    Stage(
        "generation", "per-request metrics", _SILENT, _told("generation_time_ms"), "vllm:request_decode_time_seconds"
    ),
    Stage("first_to_last_event", "client", _NO_EVENTS, _streaming_ms),
    Stage("parsing", "client", _UNSEEN, lambda record: between_ms(record.end_ns, record.par_ns)),
    Stage("validation", "client", _UNSEEN, lambda record: between_ms(record.par_ns, record.val_ns)),
)


def stage_row(stage: Stage, seen: Json | None, server: Mapping[str, Json]) -> Json:
    """A stage as the summary has it.

    Args:
        seen: its column over good answers, if any record told it.
        server: the step's histograms, as ``told_between`` has them.
    """
    told = server.get(stage.metric or "")
    if seen is not None:
        return {"stage": stage.name, "source": stage.source, "ms": seen, "server": None}
    if told is not None:
        return {"stage": stage.name, "source": f"/metrics, {stage.metric}", "ms": None, "server": told}
    return {"stage": stage.name, "source": f"unknown: {stage.absent}", "ms": None, "server": None}


def told_between(before: Page, after: Page) -> Json:
    """What a server counted in a step: its histograms that moved, times in ms, and its counters."""
    moved = difference(before, after)
    return {
        "histograms": {name: _shown(name, histogram) for name, histogram in sorted(moved.histograms.items())},
        "counters": dict(sorted(moved.counters.items())),
    }


def _shown(name: str, histogram: Histogram) -> Json:
    """Count and exact mean; a percentile is known up to its bucket's bound."""
    is_time = name.endswith("_seconds")
    unit, scale = ("_ms", 1e3) if is_time else ("", 1.0)
    numbers = {"mean": histogram.mean, "p50_at_most": histogram.at_most(0.5), "p99_at_most": histogram.at_most(0.99)}
    shown = {f"{key}{unit}": None if value is None else round(value * scale, 6) for key, value in numbers.items()}
    return {"count": int(histogram.count), **shown}
