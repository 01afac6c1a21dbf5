"""The steps of a run, made from its options before anything is sent. Pure, so that a resumed run has the same ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from vision_bench.bench.arrivals import Process, Schedule, make_schedule, trace_schedule
from vision_bench.bench.cameras import CameraLoad, Drop, camera_schedule
from vision_bench.errors import InvalidRequest

DEFAULT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The load that was asked for.

    Attributes:
        rates: requests a second, a step each; with them ``concurrency`` holds at most one number, a cap.
        concurrency: without rates, lanes of a closed loop, a step each.
        repeat: the whole ladder this many times, one after the other.
        cameras: live cameras with a frame each ``period_ms``, a step each; without rates and concurrency.
        deadline_ms: of their answers, from the frame on; None is one period.
    """

    rates: Sequence[float]
    concurrency: Sequence[int]
    arrivals: Process
    trace: Sequence[float] | None = None
    duration_seconds: float | None = None
    max_requests: int | None = None
    seed: int = 0
    repeat: int = 1
    cameras: Sequence[int] = ()
    period_ms: float | None = None
    drop: Drop = "newest"
    deadline_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``schedule`` None is a closed loop of ``concurrency`` lanes; with a schedule it is a cap, or None.

    ``variant``: what the target is to be in this step, where a workload has it be several things in turn.
    """

    name: str
    round: int
    rate: float | None
    concurrency: int | None
    schedule: Schedule | None
    arrivals: str | None
    window_ns: int | None
    max_requests: int | None
    cameras: CameraLoad | None = None
    variant: Mapping[str, Any] | None = None

    @property
    def count(self) -> int | None:
        """How many requests it has, at most; None where time alone ends it."""
        return self.max_requests if self.schedule is None else len(self.schedule.offsets_ns)

    def facts(self) -> dict[str, Any]:
        """What manifest and step lines say of it: the schedule as its hash."""
        facts = asdict(self)
        schedule = facts.pop("schedule")
        if self.variant is None:
            del facts["variant"]
        return facts | {
            "load": "cameras" if self.cameras else "closed" if self.schedule is None else "open",
            "offered_rate": None if self.schedule is None else round(self.schedule.rate, 6),
            "due": None if self.schedule is None else len(self.schedule.offsets_ns),
            "schedule_sha256": None if schedule is None or self.schedule is None else self.schedule.sha256,
        }


class Program(Protocol):
    """Which steps a run has. It is asked for them in order, each when all before it are complete.

    Attributes:
        size: how many there are, at most.
    """

    size: int

    def step(self, index: int) -> Step | None:
        """The step with this place, from 0; None where the run is over. The same one whenever it is asked."""
        ...


class Ladder:
    """Steps that are known beforehand."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self.size = len(steps)

    @property
    def has_counts(self) -> bool:
        """Whether every step says how many requests it has."""
        return all(step.count is not None for step in self._steps)

    def facts(self) -> list[dict[str, Any]]:
        """What the manifest keeps: every step with the hash of its schedule."""
        return [step.facts() for step in self._steps]

    def step(self, index: int) -> Step | None:
        return self._steps[index] if index < self.size else None

    def under_each(self, variants: Sequence[Mapping[str, Any]]) -> Ladder:
        """Each step once under each variant, next to each other: what drifts over a run drifts for all of them."""
        return Ladder(
            [
                replace(step, variant=variant, name=", ".join([step.name, *(f"{k} {v}" for k, v in variant.items())]))
                for step in self._steps
                for variant in variants
            ]
        )


def make_steps(plan: LoadPlan) -> list[Step]:
    """Every step in the order in which it runs.

    Raises:
        InvalidRequest: options that contradict each other, or a step without arrivals.
    """
    is_trace = plan.arrivals.kind == "trace"
    if plan.cameras or plan.period_ms is not None:
        return [_camera_step(plan, count, number) for number in range(plan.repeat) for count in _checked(plan)]
    if not plan.rates and not plan.concurrency and not is_trace:
        raise InvalidRequest("no load was asked for; give --rate 1,2,5 (requests a second) or --concurrency 1,2,4")
    is_open = bool(plan.rates) or is_trace
    if is_open and len(plan.concurrency) > 1:
        raise InvalidRequest("with --rate, --concurrency is a cap: give one number")
    check_sizes(plan)
    rates: Sequence[float | None] = plan.rates or [None]
    steps: list[Step] = []
    for number in range(plan.repeat):
        if is_open:
            steps += [open_step(plan, rate, number) for rate in rates]
        else:
            steps += [_closed_step(plan, lanes, number) for lanes in plan.concurrency]
    return steps


def _checked(plan: LoadPlan) -> Sequence[int]:
    """The numbers of cameras, where nothing speaks against them."""
    if not plan.cameras or plan.period_ms is None:
        raise InvalidRequest("live cameras need both --cameras N,N and --period-ms, from one frame to the next")
    if plan.rates or plan.concurrency or plan.arrivals.kind == "trace":
        raise InvalidRequest("--cameras is a load of its own; leave out --rate, --concurrency and --arrivals")
    if plan.max_requests is not None:
        raise InvalidRequest("cameras run for a time: give --duration instead of --requests")
    for name, value in (("--cameras", min(plan.cameras)), ("--period-ms", plan.period_ms)):
        if value <= 0:
            raise InvalidRequest(f"{name} must be above 0, not {value:g}")
    if plan.deadline_ms is not None and plan.deadline_ms <= 0:
        raise InvalidRequest(f"--deadline-ms must be above 0, not {plan.deadline_ms:g}")
    check_sizes(plan)
    return plan.cameras


def _camera_step(plan: LoadPlan, count: int, number: int) -> Step:
    period_ms = plan.period_ms or 0.0
    load = CameraLoad(count, round(period_ms * 1e6), plan.drop, round((plan.deadline_ms or period_ms) * 1e6))
    schedule = camera_schedule(
        load, duration_seconds=plan.duration_seconds or DEFAULT_SECONDS, seed=f"{plan.seed}/cameras/{count}/{number}"
    )
    return Step(
        name=f"{count} camera{'s' * (count > 1)}, {period_ms:g} ms",
        round=number,
        rate=None,
        concurrency=None,
        schedule=schedule,
        arrivals=f"cameras, drop {plan.drop}",
        window_ns=schedule.window_ns,
        max_requests=None,
        cameras=load,
    )


def check_sizes(plan: LoadPlan) -> None:
    """Raises InvalidRequest where a size is not above 0."""
    for name, values in (("--rate", plan.rates), ("--concurrency", plan.concurrency)):
        if any(value <= 0 for value in values):
            raise InvalidRequest(f"{name} must be above 0")
    for name, value in (("--duration", plan.duration_seconds), ("--requests", plan.max_requests)):
        if value is not None and value <= 0:
            raise InvalidRequest(f"{name} must be above 0, not {value:g}")


def open_step(plan: LoadPlan, rate: float | None, number: int) -> Step:
    """An open-loop step at this rate; ``number`` is its round, which draws other gaps.

    Raises:
        InvalidRequest: no arrival falls into it.
    """
    if plan.arrivals.kind == "trace":
        schedule = trace_schedule(
            plan.trace or [0.0],
            rate=rate,
            duration_seconds=plan.duration_seconds,
            max_requests=plan.max_requests,
        )
    else:
        assert rate is not None  # noqa: S101 - make_steps asks for one
        schedule = make_schedule(
            plan.arrivals,
            rate=rate,
            duration_seconds=_seconds(plan, plan.max_requests, rate),
            max_requests=plan.max_requests,
            seed=f"{plan.seed}/{rate:g}/{number}",
        )
    cap = plan.concurrency[0] if plan.concurrency else None
    name = plan.arrivals.label if rate is None else f"rate {rate:g}"
    return Step(
        name=name + ("" if cap is None else f", {cap} at most"),
        round=number,
        rate=rate,
        concurrency=cap,
        schedule=schedule,
        arrivals=plan.arrivals.label,
        window_ns=schedule.window_ns,
        max_requests=plan.max_requests,
    )


def _seconds(plan: LoadPlan, max_requests: int | None, rate: float) -> float:
    """What was said; long enough for the requests where only their number was said."""
    if plan.duration_seconds is not None:
        return plan.duration_seconds
    if max_requests is None:
        return DEFAULT_SECONDS
    slowest = min(rate, plan.arrivals.argument or rate) if plan.arrivals.kind == "ramp" else rate
    return (max_requests + 1) / slowest


def _closed_step(plan: LoadPlan, lanes: int, number: int) -> Step:
    has_no_end = plan.duration_seconds is None and plan.max_requests is None
    seconds = DEFAULT_SECONDS if has_no_end else plan.duration_seconds
    return Step(
        name=f"concurrency {lanes}",
        round=number,
        rate=None,
        concurrency=lanes,
        schedule=None,
        arrivals=None,
        window_ns=None if seconds is None else round(seconds * 1e9),
        max_requests=plan.max_requests,
    )
