"""A step's records to its numbers. No I/O: what is computed here can be computed again from the run folder."""

from __future__ import annotations

import math
from typing import Any

from vision_bench.bench.preprocess.record import PreprocessRecord
from vision_bench.bench.record import OK
from vision_bench.bench.requests import Closed, Requests, Window, rounded

Json = dict[str, Any]

COLUMNS = ("queue_ms", "service_ms", "work_ms", "handover_ms")


def queue_ms(record: PreprocessRecord) -> float | None:
    """start - dsp: until a worker came free."""
    return _between_ms(record.dsp_ns, record.start_ns)


def service_ms(record: PreprocessRecord) -> float | None:
    """end - start: how long the request kept a worker, as the client saw it."""
    return _between_ms(record.start_ns, record.end_ns)


def work_ms(record: PreprocessRecord) -> float | None:
    """The preprocessor alone, by the worker's clock."""
    return None if record.work_ns is None else record.work_ns / 1e6


def handover_ms(record: PreprocessRecord) -> float | None:
    """service - work: pipes, turns of two processes, and giving up the result before."""
    service, work = service_ms(record), work_ms(record)
    return None if service is None or work is None else service - work


def _between_ms(start_ns: int | None, end_ns: int | None) -> float | None:
    return None if start_ns is None or end_ns is None else (end_ns - start_ns) / 1e6


class Tally:
    """Add the records of one step one by one, then ``summary``."""

    def __init__(self, window: Window, workers: int) -> None:
        self._requests = Requests(window)
        self._workers = workers

    def add(self, record: PreprocessRecord) -> None:
        """Take one record in."""
        self._requests.add(record, record.end_ns)
        samples = self._requests.samples
        samples.put("queue_ms", queue_ms(record))
        if record.outcome == OK:
            samples.put("service_ms", service_ms(record))
            samples.put("work_ms", work_ms(record))
            samples.put("handover_ms", handover_ms(record))

    def summary(self) -> Json:
        """The step as it stands in summary.json, without what names it."""
        closed = self._requests.close()
        return closed.summary() | {
            **{name: closed.samples.column(name) for name in COLUMNS},
            "backlog": _backlog(closed),
            "utilisation": self._utilisation(closed),
        }

    def _utilisation(self, closed: Closed) -> float | None:
        """Seconds of service offered to each worker a second; above 1 the queue grows for as long as the load lasts."""
        service, offered = closed.samples.of("service_ms"), closed.window.offered_rate
        if not service or offered is None:
            return None
        return rounded(offered * math.fsum(service) / len(service) / 1e3 / self._workers)


def _backlog(closed: Closed) -> Json:
    """How fast the number in the system grew over the steady part, requests a second, with its 95 % interval."""
    flow = closed.flow
    if flow is None or flow.steady_seconds <= 0:
        return {"slope_per_second": None, "interval": None}
    ends = [rounded(end / flow.steady_seconds) for end in flow.growth_interval]
    return {"slope_per_second": rounded(flow.growth / flow.steady_seconds), "interval": ends}
