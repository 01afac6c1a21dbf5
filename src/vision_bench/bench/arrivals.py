"""When requests are due: constant, Poisson, gamma, ramp or a trace, as a pure function of a seed.

A random schedule is drawn under the condition that exactly ``rate x duration`` arrivals fall into the step: gaps are
drawn and then scaled to fill it. For exponential gaps that is the Poisson process itself, given its count; what it
takes away is the luck of the count, so that the load offered is the load asked for.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from vision_bench.errors import InvalidRequest

KINDS = ("constant", "poisson", "gamma", "ramp", "trace")
MAX_ARRIVALS = 10_000_000

Kind = Literal["constant", "poisson", "gamma", "ramp", "trace"]


@dataclass(frozen=True, slots=True)
class Process:
    """A kind of arrivals and its argument: the shape of ``gamma``, the last rate of ``ramp``, the file of ``trace``.

    The gaps of ``gamma`` have a coefficient of variation of ``1 / sqrt(shape)``: 1 is Poisson, less comes in bursts.
    """

    kind: Kind
    argument: float | None = None
    file: str | None = None

    @property
    def label(self) -> str:
        """As it is written on the command line."""
        argument = self.file if self.kind == "trace" else None if self.argument is None else f"{self.argument:g}"
        return self.kind if argument is None else f"{self.kind}:{argument}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Due times in ns from the start of the step, ascending, and how long the step is."""

    offsets_ns: Sequence[int]
    window_ns: int

    @property
    def rate(self) -> float:
        """Arrivals a second over the step."""
        return len(self.offsets_ns) / (self.window_ns / 1e9)

    @property
    def sha256(self) -> str:
        """Of the due times: two runs with the same one were offered the same load."""
        return hashlib.sha256(array("q", [self.window_ns, *self.offsets_ns]).tobytes()).hexdigest()


def parse_process(text: str) -> Process:
    """``constant``, ``poisson``, ``gamma:SHAPE``, ``ramp:TO`` or ``trace:FILE``.

    Raises:
        InvalidRequest: anything else; the message says what is known.
    """
    kind, _, argument = text.partition(":")
    match kind:
        case "constant" | "poisson" if not argument:
            return Process(kind)
        case "gamma":
            return Process("gamma", _number(text, argument, "SHAPE", low=0.05, high=1000))
        case "ramp":
            return Process("ramp", _number(text, argument, "TO", low=0, high=1e6))
        case "trace" if argument:
            return Process("trace", file=argument)
    raise InvalidRequest(
        f"arrivals {text!r} are not known; choose constant, poisson, gamma:SHAPE, ramp:TO (requests a second at the "
        "end) or trace:FILE (a line for each arrival: seconds from the start)"
    )


def _number(text: str, argument: str, name: str, *, low: float, high: float) -> float:
    try:
        value = float(argument)
    except ValueError:
        value = math.nan
    if not low < value <= high:
        raise InvalidRequest(f"arrivals {text!r}: {name} must be a number above {low:g}, at most {high:g}")
    return value


def read_trace(lines: Iterable[str]) -> list[float]:
    """Seconds from the start, one a line, ascending. Blank lines and lines that begin with ``#`` are skipped.

    Raises:
        InvalidRequest: no line, a line that is no number of seconds, or a time before the one above it.
    """
    times: list[float] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not (0.0 <= seconds < math.inf):
            raise InvalidRequest(f"trace line {number} is {text[:40]!r}; it must be seconds from the start, 0 or more")
        if times and seconds < times[-1]:
            raise InvalidRequest(f"trace line {number} is {text[:40]}, before the line above it; sort the times")
        times.append(seconds)
    if not times:
        raise InvalidRequest("the trace holds no arrival; write a line for each: seconds from the start")
    return times


def make_schedule(
    process: Process, *, rate: float, duration_seconds: float, seed: str, max_requests: int | None = None
) -> Schedule:
    """The due times of one step of any kind but ``trace``.

    Args:
        rate: requests a second; for ``ramp`` the first one.
        max_requests: the step ends after this many, if that comes before ``duration_seconds``.
        seed: the same one gives the same times, on any machine.

    Raises:
        InvalidRequest: a rate or duration that gives no arrival, or more than ten million.
    """
    if not (0.0 < rate < math.inf and 0.0 < duration_seconds < math.inf):
        raise InvalidRequest(f"rate {rate:g} and duration {duration_seconds:g} s must be numbers above 0")
    last_rate = rate if process.kind != "ramp" or process.argument is None else process.argument
    count = round((rate + last_rate) / 2.0 * duration_seconds)
    if max_requests is not None and max_requests < count:
        count = max_requests
        duration_seconds = _time_of(count, rate, last_rate, duration_seconds)
    if not 1 <= count <= MAX_ARRIVALS:
        raise InvalidRequest(
            f"{rate:g} a second for {duration_seconds:g} s is {count} arrivals; it must be 1 to {MAX_ARRIVALS:,}"
        )
    window_ns = round(duration_seconds * 1e9)
    if process.kind in ("poisson", "gamma"):
        shape = 1.0 if process.argument is None else process.argument
        return Schedule(_renewal(random.Random(seed), shape, count, window_ns), window_ns)  # noqa: S311 - a schedule
    offsets = [round(_time_of(index, rate, last_rate, duration_seconds) * 1e9) for index in range(count)]
    return Schedule(offsets, window_ns)


def trace_schedule(
    times: Sequence[float], *, rate: float | None, duration_seconds: float | None, max_requests: int | None = None
) -> Schedule:
    """A recorded trace as a schedule.

    Args:
        rate: stretch or squeeze the trace to this mean rate; None plays it at its own.
        duration_seconds: leave out what comes later; None plays it whole.
    """
    own_seconds = times[-1] * len(times) / max(1, len(times) - 1)  # one mean gap follows the last arrival
    if own_seconds < 1e-6:  # all at once: there is no gap to go by
        own_seconds = 1.0
    scale = 1.0 if rate is None else len(times) / rate / own_seconds
    window_seconds = own_seconds * scale if duration_seconds is None else min(duration_seconds, own_seconds * scale)
    offsets = [round(seconds * scale * 1e9) for seconds in times if seconds * scale < window_seconds]
    window_ns = round(window_seconds * 1e9)
    if max_requests is not None and max_requests < len(offsets):
        offsets, window_ns = offsets[:max_requests], offsets[max_requests]
    return Schedule(offsets, max(window_ns, 1))


def _time_of(index: int, rate: float, last_rate: float, duration_seconds: float) -> float:
    """When a rate that moves in a straight line from ``rate`` to ``last_rate`` has made ``index`` arrivals, seconds."""
    growth = (last_rate - rate) / duration_seconds
    # The root of rate t + growth t^2 / 2 = index, in the form that stays exact as growth goes to 0.
    return 2.0 * index / (rate + math.sqrt(max(0.0, rate * rate + 2.0 * growth * index)))


def _renewal(rng: random.Random, shape: float, count: int, window_ns: int) -> list[int]:
    draw = rng.expovariate if shape == 1.0 else lambda _: rng.gammavariate(shape, 1.0)
    ends = list(itertools.accumulate(draw(1.0) for _ in range(count + 1)))
    scale = window_ns / (ends[-1] or 1.0)
    return [min(int(end * scale), window_ns - 1) for end in ends[:-1]]
