"""What must hold after a soak, each as one line that passes or fails with its figures. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.soak import faults
from benchmarks.soak.caller import Seen
from benchmarks.soak.run import PERMITS, Pass, Run

MOST_GROWTH = 0.10
MARGIN_SECONDS = 0.2
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Check:
    """One demand: did it hold, and what was found. None: it could not be asked."""

    name: str
    holds: bool | None
    found: str


def check(run: Run) -> list[Check]:
    """Every demand, in the order of the documentation."""
    return [
        _permits(run),
        _gauges(run),
        _upstream_connections(run),
        _dropped_calls(run),
        _memory(run),
        _files(run),
        _lines(run),
        _outcomes(run),
        _log(run),
        _log_lines(run),
        Check("told to stop, the gateway ends with 0", run.exit_code == 0, f"exit code {run.exit_code}"),
    ]


def unexpected(run: Run) -> list[dict[str, Any]]:
    """Requests and lines that came to something that the plan does not allow."""
    return [odd for done in run.passes for one in done.seen for odd in _odd(one, done)]


def table(run: Run) -> dict[str, dict[str, int]]:
    """Planned by observed: how many requests and batch items that were to go so went so."""
    rows: dict[str, Counter[str]] = {}
    for done in run.passes:
        for one in done.seen:
            rows.setdefault(_planned(one), Counter())[one.outcome] += 1
            for call in one.ask.calls if one.lines else ():
                for outcome in one.lines.get(call.marker, ["no line"]):
                    rows.setdefault(f"item {call.fault}", Counter())[outcome] += 1
    return {name: dict(sorted(rows[name].items())) for name in sorted(rows)}


def _planned(one: Seen) -> str:
    ask = one.ask
    if ask.leaves:
        return f"{ask.kind}, caller leaves {ask.leaves}"
    if ask.kind == "refused":
        return f"refused {ask.refused}"
    return f"{ask.kind} {ask.calls[0].fault}" if ask.kind in {"chat", "stream"} else ask.kind


def _odd(one: Seen, done: Pass) -> Iterator[dict[str, Any]]:
    extra: faults.Outcomes = frozenset()
    if any(one.began < end + MARGIN_SECONDS and one.ended > began for began, end in done.outages):
        extra |= faults.OUTAGE
    if one.ask.calls and all(call.fault == "silence" for call in one.ask.calls):
        extra |= faults.CROWD  # the crowd is made of silence, and those around it wait behind it
    seconds = round(one.ended - one.began, 3)
    if one.outcome not in one.ask.expected() | extra:
        yield {"marker": one.ask.marker, "planned": _planned(one), "observed": one.outcome, "seconds": seconds}
    for call in one.ask.calls if one.lines else ():
        for outcome in one.lines.get(call.marker, ()):
            if outcome not in faults.ITEM[call.fault] | extra:
                yield {"marker": call.marker, "planned": f"item {call.fault}", "observed": outcome, "seconds": seconds}


def _permits(run: Run) -> Check:
    most = [done.most_running for done in run.passes]
    half_open = [done.half_open for done in run.passes]
    good = all(set(done.permit_outcomes) == {"ok"} for done in run.passes)
    return Check(
        "after every pass all permits are free, and never more",
        good and set(most) == {PERMITS},
        f"{3 * PERMITS} calls at once ran {most} at a time with VLLM_CONCURRENCY={PERMITS}, while {half_open} "
        "connections of callers that had vanished were still open",
    )


def _gauges(run: Run) -> Check:
    left = [{name: value for name, value in done.gauges.items() if value} for done in run.passes]
    return Check(
        "/metrics says that nothing runs, waits or is held",
        all(done.gauges for done in run.passes) and not any(left),
        f"{sorted(run.passes[0].gauges)}: all 0 after each pass" if not any(left) else f"{left}",
    )


def _upstream_connections(run: Run) -> Check:
    found = [done.open_upstream for done in run.passes]
    return Check("no connection to the upstream is left over", not any(found), f"{found} open after each pass")


def _dropped_calls(run: Run) -> Check:
    left = sum(bool(one.ask.leaves) for done in run.passes for one in done.seen)
    found = [done.outlived for done in run.passes]
    return Check(
        "a caller that leaves ends its call upstream",
        not any(found),
        f"{left} callers left; {found} calls ran on to their time limit",
    )


def _memory(run: Run) -> Check:
    settled = [done.settled_bytes for done in run.passes]
    shown = ", ".join(f"{size / 2**20:.1f}" for size in settled)
    if len(settled) < 3:
        return Check("settled memory does not grow", None, f"{shown} MiB; three passes are needed to say")
    growth = settled[2] / settled[1] - 1
    return Check(
        "settled memory does not grow",
        growth < MOST_GROWTH,
        f"{shown} MiB after each pass: {growth:+.1%} from the second to the third",
    )


def _files(run: Run) -> Check:
    found = [done.open_files for done in run.passes]
    return Check(
        "open files are back where they began",
        all(count <= run.base_files for count in found),
        f"{run.base_files} before, {found} after each pass",
    )


def _lines(run: Run) -> Check:
    whole = [one for done in run.passes for one in done.seen if one.ask.kind == "batch" and one.status == 200]
    whole = [one for one in whole if one.outcome != "left"]
    items = sum(len(one.ask.calls) for one in whole)
    wrong = [one.ask.marker for one in whole if one.outcome != "ok"]
    foreign = sum(
        "foreign" in (one.outcome, *(o for line in one.lines.values() for o in line))
        for done in run.passes
        for one in done.seen
    )
    return Check(
        "every batch item has one line, and no answer belongs to another request",
        not wrong and not foreign,
        f"{items} items of {len(whole)} batches, {len(wrong)} batches wrong, {foreign} foreign answers",
    )


def _outcomes(run: Run) -> Check:
    odd = unexpected(run)
    total = sum(len(done.seen) for done in run.passes)
    hung = sum(one.outcome == "hang" for done in run.passes for one in done.seen)
    examples = "".join(f"; {one}" for one in odd[:3])
    return Check(
        "every request ends as planned: no hang, no 500 of the gateway's own",
        not odd,
        f"{total} requests, {hung} hung, {len(odd)} unexpected{examples}",
    )


def _log(run: Run) -> Check:
    words = ("Traceback", "internal_error", "the gateway itself failed", "exception was never retrieved")
    found = [line for line in run.log.splitlines() if any(word in line for word in words)]
    return Check("the log holds no traceback", not found, f"{len(found)} lines{''.join('; ' + f for f in found[:3])}")


def _log_lines(run: Run) -> Check:
    counts = Counter(
        line.partition("request_id=")[2].split(" ")[0] for line in run.log.splitlines() if " outcome=" in line
    )
    answered = [one for done in run.passes for one in done.seen if one.status is not None and _is_named(one)]
    wrong = [one.ask.marker for one in answered if counts[one.ask.marker] != 1]
    return Check(
        "every answer has one line in the log",
        not wrong,
        f"{len(answered)} answers, {len(wrong)} without or with several{''.join('; ' + m for m in wrong[:3])}",
    )


def _is_named(one: Seen) -> bool:
    return one.ask.refused != "no_http"


def shown(odd: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many as help."""
    return list(odd[:_SHOWN])
