"""A step's records to its numbers. No I/O: what is computed here can be computed again from the run folder."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vision_bench.bench.chat import formulas
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.chat.slo import Limit, is_good
from vision_bench.bench.chat.stages import STAGES, stage_row
from vision_bench.bench.column import column
from vision_bench.bench.record import OK, RUNNING, UNSENT
from vision_bench.bench.verdict import Evidence, Flow, Span, flow_of, judge
from vision_bench.stats import percentile, wilson_interval

Json = dict[str, Any]
Number = Callable[[ChatRecord], float | None]

LOST = "lost"
"""Outcome of an arrival whose record a killed run took with it."""

SERVICE: dict[str, Number] = {
    "ttft_ms": formulas.ttft_ms,
    "first_text_ms": formulas.first_text_ms,
    "ttfb_ms": formulas.ttfb_ms,
    "tpot_ms": formulas.tpot_ms,
    "ntpot_ms": formulas.ntpot_ms,
    "max_icl_ms": formulas.max_gap_ms,
    "stall_ratio": formulas.stall_ratio,
    "e2e_ms": formulas.e2e_ms,
    "full_response_ms": formulas.full_response_ms,
    "parsed_ms": formulas.parsed_ms,
    "validated_ms": formulas.validated_ms,
    "workflow_ms": formulas.workflow_ms,
}
"""Over good answers."""

SCHEDULED: dict[str, Number] = {
    "scheduled_ttft_ms": formulas.scheduled_ttft_ms,
    "response_ms": formulas.response_ms,
}
"""Over everything that was due: failed and unsent count as infinite, still running as at least their age."""

CLIENT: dict[str, Number] = {
    "lag_ms": formulas.lag_ms,
    "wait_ms": formulas.wait_ms,
    "connect_ms": formulas.connect_ms,
    "upload_ms": formulas.upload_ms,
}
"""Over everything that was sent."""


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step was meant to be, and what the driver knows of it.

    Attributes:
        streams: events were asked for; without, a failed request has no infinite TTFT either.
        is_cold: the workload says that caches are cold.
        fixed_tokens: every answer was asked to be this long.
        server: what the server counted in the step, as ``stages.told_between`` has it; empty where it does not tell.
    """

    start_ns: int
    window_ns: int
    is_complete: bool
    offered_rate: float | None
    due: int | None
    streams: bool
    mean_in_flight: float = 0.0
    loop_lag_p99_ms: float = 0.0
    cpu_share: float = 0.0
    is_cold: bool = False
    fixed_tokens: int | None = None
    slo: Sequence[Limit] = ()
    server: Mapping[str, Json] = field(default_factory=dict)


@dataclass
class Tally:
    """Add the records of one step one by one, then ``summary``."""

    context: StepContext
    outcomes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    details: Counter[tuple[str, str]] = field(default_factory=Counter)
    finish_reasons: Counter[str] = field(default_factory=Counter)
    _count: int = 0
    _last_index: int = -1
    _good: int = 0
    _valid: int = 0
    _checked: int = 0
    _repeats: int = 0
    _off_length: int = 0
    _connections: int = 0
    _cached_requests: int = 0
    _cached_told: int = 0
    _token_ends: list[tuple[int, int]] = field(default_factory=list)
    _sums: Counter[str] = field(default_factory=Counter)
    _spans: list[Span] = field(default_factory=list)
    _values: dict[str, array[float]] = field(default_factory=dict)
    _censored: dict[str, array[float]] = field(default_factory=dict)
    _splits: dict[str, array[float]] = field(default_factory=dict)

    def add(self, record: ChatRecord) -> None:
        """Take one record in."""
        self._count += 1
        self._last_index = max(self._last_index, record.index)
        outcome = record.outcome or RUNNING
        self.outcomes[outcome] += 1
        if record.status is not None:
            self.statuses[str(record.status)] += 1
        if outcome != OK:
            self.details[outcome, record.detail or ""] += 1
        self._add_span(record)
        self._repeats += record.is_repeat
        self._connections += bool(record.is_new_connection)
        for name, number in CLIENT.items():
            self._put(name, number(record))
        for name, number in SCHEDULED.items():
            self._put_scheduled(name, number(record), record)
        if outcome == OK:
            self._add_good(record)

    def _add_good(self, record: ChatRecord) -> None:
        for name, number in SERVICE.items():
            self._put(name, number(record))
        for name, values in (("icl_ms", formulas.gaps_ms(record)), ("itl_ms", formulas.itl_ms(record))):
            self._values.setdefault(name, array("d")).extend(values)
        for name, value in record.server_ms.items():
            self._put(f"server/{name}", value)
        for stage in STAGES:
            if stage.of is not None:
                self._put(f"stage/{stage.name}", stage.of(record))
        self._good += is_good(record, self.context.slo)
        self.finish_reasons[record.finish_reason or "not told"] += 1
        self._checked += record.is_valid is not None
        self._valid += record.is_valid is True
        for kind in ("prompt_tokens", "completion_tokens"):
            self._put(kind, getattr(record, kind))
        for kind, count in (record.media_tokens or {}).items():
            self._put(f"media/{kind}", count)
        if record.cached_tokens is not None:
            self._cached_told += 1
            self._cached_requests += record.cached_tokens > 0
            self._sums["cached_tokens"] += record.cached_tokens
        if record.completion_tokens is not None and record.end_ns is not None:
            self._token_ends.append((record.end_ns, record.completion_tokens))
        wanted = self.context.fixed_tokens
        self._off_length += wanted is not None and record.completion_tokens not in (None, wanted)
        self._split("repeat" if record.is_repeat else "first", record)
        if record.is_warm is not None:
            self._split("warm" if record.is_warm else "cold", record)

    def _add_span(self, record: ChatRecord) -> None:
        start_ns = self.context.start_ns
        end_ns = record.end_ns if record.outcome == OK and record.end_ns is not None else record.stop_ns
        is_over = record.outcome != RUNNING and end_ns is not None
        ended = end_ns - start_ns if is_over and end_ns is not None else None
        self._spans.append(Span(record.due_ns - start_ns, ended, record.outcome == OK))

    def _put(self, name: str, value: float | None) -> None:
        if value is not None:
            self._values.setdefault(name, array("d")).append(value)

    def _put_scheduled(self, name: str, value: float | None, record: ChatRecord) -> None:
        if name == "scheduled_ttft_ms" and not self.context.streams:
            return
        if record.outcome == OK:
            self._put(name, value)
        elif record.outcome == RUNNING:
            if name == "scheduled_ttft_ms" and value is not None:
                self._put(name, value)  # its first token has come
            else:
                age_ms = formulas.between_ms(record.due_ns, record.stop_ns) or 0.0
                self._censored.setdefault(name, array("d")).append(age_ms)
        else:
            self._put(name, math.inf)

    def _split(self, name: str, record: ChatRecord) -> None:
        for number_name in ("ttft_ms", "e2e_ms"):
            value = NUMBER_OF[number_name](record)
            if value is not None:
                self._splits.setdefault(f"{name}/{number_name}", array("d")).append(value)

    # --- the end

    def summary(self) -> Json:
        """The step as it stands in summary.json, without what names it."""
        context = self.context
        due = max(context.due or 0, self._last_index + 1)
        lost = due - self._count
        if lost:
            self.outcomes[LOST] = lost
            for name in SCHEDULED if context.streams else ("response_ms",):
                self._values.setdefault(name, array("d")).extend([math.inf] * lost)
        ok, sent = self.outcomes[OK], due - self.outcomes[UNSENT]
        flow = flow_of(self._spans, context.window_ns) if self._spans and context.window_ns > 0 else None
        verdict = judge(self._evidence(due, ok), flow)
        window_seconds = context.window_ns / 1e9
        return {
            "offered_rate": context.offered_rate,
            "dispatched_rate": _rate(sent, window_seconds),
            "achieved_rate": self._achieved_rate(flow),
            "verdict": verdict.name,
            "verdict_reason": verdict.reason,
            "is_complete": context.is_complete,
            "duration_seconds": _rounded(window_seconds),
            "requests": {
                "due": due,
                "sent": sent,
                "ok": ok,
                "failed": due - ok,
                "outcomes": dict(sorted(self.outcomes.items())),
                "statuses": dict(sorted(self.statuses.items())),
            },
            "failures": [
                {"outcome": outcome, "detail": detail, "count": count}
                for (outcome, detail), count in self.details.most_common(5)
            ],
            **{name: self._column(name) for name in (*SERVICE, "icl_ms", "itl_ms", *SCHEDULED, *CLIENT)},
            **self._totals(due, sent, flow),
        }

    def _achieved_rate(self, flow: Flow | None) -> float | None:
        """Over the steady part; of a step too short to have one, all good answers over the time to the last."""
        if flow is not None and flow.achieved_rate is not None:
            return _rounded(flow.achieved_rate)
        ends = [span.end_ns for span in self._spans if span.is_ok and span.end_ns is not None]
        return _rate(len(ends), max(ends) / 1e9) if ends else None

    def _totals(self, due: int, sent: int, flow: Flow | None) -> Json:
        context = self.context
        window_seconds = context.window_ns / 1e9
        interval = wilson_interval(self._good, due)
        return {
            "prompt_tokens": self._column("prompt_tokens"),
            "completion_tokens": self._column("completion_tokens"),
            "media_tokens": self._group("media/"),
            "output_tokens_per_second": self._tokens_per_second(flow),
            "goodput": _rate(self._good, window_seconds),
            "slo": {
                "limits": {
                    limit.name: f"<{'=' if limit.is_inclusive else ''}{limit.limit_ms:g}" for limit in context.slo
                },
                "attained": self._good,
                "attainment": _rounded(self._good / due) if due else None,
                "interval": None if interval is None else [_rounded(interval.low), _rounded(interval.high)],
            },
            "valid": {"checked": self._checked, "valid": self._valid},
            "finish_reasons": dict(sorted(self.finish_reasons.items())),
            "repeats": self._repeats,
            "cache": {
                "told": self._cached_told,
                "requests_with_cached_tokens": self._cached_requests,
                "cached_tokens": self._sums["cached_tokens"] if self._cached_told else None,
            },
            "in_flight": self._in_flight(flow),
            "client": {
                "cpu_share": _rounded(context.cpu_share),
                "cpu_ms_per_request": _rounded(context.cpu_share * window_seconds * 1e3 / sent) if sent else None,
                "loop_lag_p99_ms": _rounded(context.loop_lag_p99_ms),
                "connections_opened": self._connections,
            },
            "server_ms": self._group("server/"),
            "server": {name: context.server.get(name, {}) for name in ("histograms", "counters")},
            "stages": self._stages(),
            "splits": self._split_columns(),
        }

    def _stages(self) -> list[Json]:
        seen = self._group("stage/")
        told = self.context.server.get("histograms", {})
        return [stage_row(stage, seen.get(stage.name), told) for stage in STAGES]

    def _column(self, name: str) -> Json:
        return column(self._values.get(name, ()), censored=self._censored.get(name, ()))

    def _group(self, prefix: str) -> Json:
        return {name.removeprefix(prefix): column(v) for name, v in self._values.items() if name.startswith(prefix)}

    def _split_columns(self) -> Json:
        """TTFT and e2e of first and repeated bodies, of cold and warm threads, where a step has both."""
        found: Json = {}
        for pair in (("first", "repeat"), ("cold", "warm")):
            parts = {
                name: {
                    number: column(values)
                    for number in ("ttft_ms", "e2e_ms")
                    if (values := self._splits.get(f"{name}/{number}"))
                }
                for name in pair
            }
            if all(parts.values()):
                found |= parts
        return found

    def _tokens_per_second(self, flow: Flow | None) -> float | None:
        """Completion tokens of good answers that ended in the steady part, by its length."""
        if flow is None or not self._token_ends or flow.steady_seconds <= 0:
            return None
        end_ns = self.context.start_ns + self.context.window_ns
        from_ns = end_ns - int(flow.steady_seconds * 1e9)
        tokens = sum(count for at_ns, count in self._token_ends if from_ns < at_ns <= end_ns)
        return _rounded(tokens / flow.steady_seconds)

    def _in_flight(self, flow: Flow | None) -> Json:
        """The driver's own count against the records': Little's law, each request's time cut at the window's end."""
        context = self.context
        spent_ns = sum(
            max(0, min(span.end_ns or context.window_ns, context.window_ns) - max(span.start_ns, 0))
            for span in self._spans
        )
        by_records = spent_ns / context.window_ns if context.window_ns else 0.0
        by_driver = context.mean_in_flight
        error = abs(by_driver - by_records) / by_driver if by_driver else None
        return {
            "mean": _rounded(by_driver),
            "mean_by_records": _rounded(by_records),
            "little_error": _rounded(error),
            "growth": None if flow is None else _rounded(flow.growth),
            "growth_interval": None if flow is None else [_rounded(end) for end in flow.growth_interval],
        }

    def _evidence(self, due: int, ok: int) -> Evidence:
        context = self.context
        lags, responses = self._values.get("lag_ms", ()), self._values.get("response_ms", ())
        return Evidence(
            due=due,
            ok=ok,
            is_complete=context.is_complete,
            window_seconds=context.window_ns / 1e9,
            offered_rate=context.offered_rate,
            lag_p99_ms=percentile(lags, 0.99) if lags else 0.0,
            loop_lag_p99_ms=context.loop_lag_p99_ms,
            cpu_share=context.cpu_share,
            response_p50_ms=percentile(responses, 0.5) if responses else math.inf,
            failures=", ".join(f"{name} {count}" for name, count in self.outcomes.most_common() if name != OK),
            doubts=self._doubts(ok),
        )

    def _doubts(self, ok: int) -> list[str]:
        doubts = []
        if self.context.is_cold and self._cached_requests:
            doubts.append(f"{self._cached_requests} of {ok} answers used cached tokens in a run that is called cold")
        if self._off_length:
            doubts.append(f"{self._off_length} of {ok} answers are not {self.context.fixed_tokens} tokens long")
        return doubts


NUMBER_OF: dict[str, Number] = SERVICE | SCHEDULED | CLIENT


def _rate(count: int, seconds: float) -> float | None:
    return _rounded(count / seconds) if seconds > 0 else None


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 6)
