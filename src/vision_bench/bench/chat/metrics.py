"""A step's records to its numbers. No I/O: what is computed here can be computed again from the run folder."""

from __future__ import annotations

from typing import Any

from vision_bench.bench.chat import formulas
from vision_bench.bench.chat.counted import Counted
from vision_bench.bench.chat.numbers import CLIENT, SCHEDULED, SERVICE, StepContext
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.chat.stages import STAGES, stage_row
from vision_bench.bench.freshness import judge_cameras
from vision_bench.bench.record import RUNNING
from vision_bench.bench.requests import RESPONSE, Closed, Requests, rate, rounded
from vision_bench.bench.verdict import Flow
from vision_bench.stats import wilson_interval

Json = dict[str, Any]

SCHEDULED_TTFT = "scheduled_ttft_ms"


class Tally:
    """Add the records of one step one by one, then ``summary``."""

    def __init__(self, context: StepContext) -> None:
        self.context = context
        self._requests = Requests(context.window, tuple(SCHEDULED) if context.streams else (RESPONSE,))
        self._samples = self._requests.samples
        self._counted = Counted(context, self._samples)

    def add(self, record: ChatRecord) -> None:
        """Take one record in."""
        self._requests.add(record, record.end_ns, formulas.last_ns(record))
        if self.context.streams:
            self._put_scheduled_ttft(record)
        self._counted.add(record)

    def _put_scheduled_ttft(self, record: ChatRecord) -> None:
        value_ms = formulas.scheduled_ttft_ms(record)
        if record.outcome in (None, RUNNING) and value_ms is not None:
            self._samples.put(SCHEDULED_TTFT, value_ms)  # its first token has come
        else:
            self._requests.put_scheduled(SCHEDULED_TTFT, record, value_ms)

    def summary(self) -> Json:
        """The step as it stands in summary.json, without what names it."""
        counted = self._counted
        closed = self._requests.close(self._doubts())
        fresh = counted.freshness
        common = closed.summary(None if fresh is None else judge_cameras(closed.evidence(), fresh))
        common["requests"]["statuses"] = dict(sorted(counted.statuses.items()))
        common["client"]["connections_opened"] = counted.connections
        return {
            **common,
            **{name: self._samples.column(name) for name in (*SERVICE, "icl_ms", "itl_ms", *SCHEDULED, *CLIENT)},
            **self._totals(closed),
            "live": None if fresh is None else fresh.summary(closed.due, closed.window.window_ns),
        }

    def _totals(self, closed: Closed) -> Json:
        context, counted = self.context, self._counted
        interval = wilson_interval(counted.good, closed.due)
        return {
            "prompt_tokens": self._samples.column("prompt_tokens"),
            "system_tokens": context.system_tokens,
            "completion_tokens": self._samples.column("completion_tokens"),
            "media_tokens": self._samples.group("media/"),
            "output_tokens_per_second": self._tokens_per_second(closed.flow),
            "goodput": rate(counted.good, closed.window.seconds),
            "slo": {
                "limits": {
                    limit.name: f"<{'=' if limit.is_inclusive else ''}{limit.limit_ms:g}" for limit in context.slo
                },
                "attained": counted.good,
                "attainment": rounded(counted.good / closed.due) if closed.due else None,
                "interval": None if interval is None else [rounded(interval.low), rounded(interval.high)],
            },
            "valid": {"checked": counted.checked, "valid": counted.valid},
            "accuracy": counted.accuracy.summary(),
            "finish_reasons": dict(sorted(counted.finish_reasons.items())),
            "repeats": counted.repeats,
            "cache": {
                "told": counted.cached_told,
                "requests_with_cached_tokens": counted.cached_requests,
                "cached_tokens": counted.cached_tokens if counted.cached_told else None,
            },
            "server_ms": self._samples.group("server/"),
            "server": {name: context.server.get(name, {}) for name in ("histograms", "counters")},
            "stages": self._stages(),
            "receipts": None if context.receipts is None else context.receipts.summary(),
            "splits": self._splits(),
        }

    def _stages(self) -> list[Json]:
        seen = self._samples.group("stage/")
        if self.context.preprocess_ms is not None:
            seen["decoding_and_preprocessing"] = self.context.preprocess_ms
        told = self.context.server.get("histograms", {})
        return [stage_row(stage, seen.get(stage.name), told) for stage in STAGES]

    def _splits(self) -> Json:
        """TTFT and e2e of first and repeated bodies, of cold and warm threads, where a step has both."""
        found: Json = {}
        for pair in (("first", "repeat"), ("cold", "warm")):
            parts = {name: self._samples.group(f"split/{name}/") for name in pair}
            if all(parts.values()):
                found |= parts
        return found

    def _tokens_per_second(self, flow: Flow | None) -> float | None:
        """Completion tokens of good answers that ended in the steady part, by its length."""
        if flow is None or not self._counted.token_ends or flow.steady_seconds <= 0:
            return None
        end_ns = self.context.window.start_ns + self.context.window.window_ns
        from_ns = end_ns - int(flow.steady_seconds * 1e9)
        tokens = sum(count for at_ns, count in self._counted.token_ends if from_ns < at_ns <= end_ns)
        return rounded(tokens / flow.steady_seconds)

    def _doubts(self) -> list[str]:
        doubts, ok = [], self._requests.ok
        if self.context.is_cold and self._counted.cached_requests:
            doubts.append(
                f"{self._counted.cached_requests} of {ok} answers used cached tokens in a run that is called cold"
            )
        if self._counted.off_length:
            doubts.append(f"{self._counted.off_length} of {ok} answers are not {self.context.fixed_tokens} tokens long")
        return doubts
