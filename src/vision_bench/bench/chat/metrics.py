"""A step's records to its numbers. No I/O: what is computed here can be computed again from the run folder."""

from __future__ import annotations

import math
from typing import Any

from vision_bench.bench.chat.counted import Counted
from vision_bench.bench.chat.numbers import CLIENT, SCHEDULED, SERVICE, StepContext
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.chat.stages import STAGES, stage_row
from vision_bench.bench.freshness import judge_cameras
from vision_bench.bench.record import DROPPED, OK, UNSENT
from vision_bench.bench.requests import LOST, SHOWN_FAILURES, achieved_rate, in_flight, rate, rounded
from vision_bench.bench.verdict import Evidence, Flow, flow_of, judge
from vision_bench.stats import percentile, wilson_interval

Json = dict[str, Any]


class Tally:
    """Add the records of one step one by one, then ``summary``."""

    def __init__(self, context: StepContext) -> None:
        self.context = context
        self._counted = Counted(context)
        self._samples = self._counted.samples

    def add(self, record: ChatRecord) -> None:
        """Take one record in."""
        self._counted.add(record)

    def summary(self) -> Json:
        """The step as it stands in summary.json, without what names it."""
        context = self.context
        due = max(context.due or 0, self._counted.last_index + 1)
        lost = due - self._counted.count
        if lost:
            self._counted.outcomes[LOST] = lost
            for name in SCHEDULED if context.streams else ("response_ms",):
                self._samples.put_all(name, [math.inf] * lost)
        ok, sent = self._counted.outcomes[OK], due - self._counted.outcomes[UNSENT] - self._counted.outcomes[DROPPED]
        flow = (
            flow_of(self._counted.spans, context.window_ns) if self._counted.spans and context.window_ns > 0 else None
        )
        fresh, dropped = self._counted.freshness, self._counted.outcomes[DROPPED]
        evidence = self._evidence(due, ok)
        verdict = judge(evidence, flow) if fresh is None else judge_cameras(evidence, fresh)
        window_seconds = context.window_ns / 1e9
        return {
            "offered_rate": context.offered_rate,
            "dispatched_rate": rate(sent, window_seconds),
            "achieved_rate": achieved_rate(flow, self._counted.spans),
            "verdict": verdict.name,
            "verdict_reason": verdict.reason,
            "is_complete": context.is_complete,
            "duration_seconds": rounded(window_seconds),
            "requests": {
                "due": due,
                "sent": sent,
                "ok": ok,
                "failed": due - ok - dropped,
                "outcomes": dict(sorted(self._counted.outcomes.items())),
                "statuses": dict(sorted(self._counted.statuses.items())),
            },
            "failures": [
                {"outcome": outcome, "detail": detail, "count": count}
                for (outcome, detail), count in self._counted.details.most_common(SHOWN_FAILURES)
            ],
            **{name: self._samples.column(name) for name in (*SERVICE, "icl_ms", "itl_ms", *SCHEDULED, *CLIENT)},
            **self._totals(due, sent, flow),
            "live": None if fresh is None else fresh.summary(due, context.window_ns),
        }

    def _totals(self, due: int, sent: int, flow: Flow | None) -> Json:
        context = self.context
        window_seconds = context.window_ns / 1e9
        interval = wilson_interval(self._counted.good, due)
        return {
            "prompt_tokens": self._samples.column("prompt_tokens"),
            "system_tokens": context.system_tokens,
            "completion_tokens": self._samples.column("completion_tokens"),
            "media_tokens": self._samples.group("media/"),
            "output_tokens_per_second": self._tokens_per_second(flow),
            "goodput": rate(self._counted.good, window_seconds),
            "slo": {
                "limits": {
                    limit.name: f"<{'=' if limit.is_inclusive else ''}{limit.limit_ms:g}" for limit in context.slo
                },
                "attained": self._counted.good,
                "attainment": rounded(self._counted.good / due) if due else None,
                "interval": None if interval is None else [rounded(interval.low), rounded(interval.high)],
            },
            "valid": {"checked": self._counted.checked, "valid": self._counted.valid},
            "accuracy": self._counted.accuracy.summary(),
            "finish_reasons": dict(sorted(self._counted.finish_reasons.items())),
            "repeats": self._counted.repeats,
            "cache": {
                "told": self._counted.cached_told,
                "requests_with_cached_tokens": self._counted.cached_requests,
                "cached_tokens": self._counted.cached_tokens if self._counted.cached_told else None,
            },
            "in_flight": in_flight(flow, self._counted.spans, context.window_ns, context.mean_in_flight),
            "client": {
                "cpu_share": rounded(context.cpu_share),
                "cpu_ms_per_request": rounded(context.cpu_share * window_seconds * 1e3 / sent) if sent else None,
                "loop_lag_p99_ms": rounded(context.loop_lag_p99_ms),
                "connections_opened": self._counted.connections,
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
        end_ns = self.context.start_ns + self.context.window_ns
        from_ns = end_ns - int(flow.steady_seconds * 1e9)
        tokens = sum(count for at_ns, count in self._counted.token_ends if from_ns < at_ns <= end_ns)
        return rounded(tokens / flow.steady_seconds)

    def _evidence(self, due: int, ok: int) -> Evidence:
        context = self.context
        lags, responses = self._samples.of("lag_ms"), self._samples.of("response_ms")
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
            failures=", ".join(
                f"{name} {count}" for name, count in self._counted.outcomes.most_common() if name not in (OK, DROPPED)
            ),
            doubts=self._doubts(ok),
        )

    def _doubts(self, ok: int) -> list[str]:
        doubts = []
        if self.context.is_cold and self._counted.cached_requests:
            doubts.append(
                f"{self._counted.cached_requests} of {ok} answers used cached tokens in a run that is called cold"
            )
        if self._counted.off_length:
            doubts.append(f"{self._counted.off_length} of {ok} answers are not {self.context.fixed_tokens} tokens long")
        return doubts
