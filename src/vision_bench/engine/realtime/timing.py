"""When each chunk is due, declared beforehand: what the server promises, and what a client's clock is judged by.

A session's times depend on the seed, its number and the chunk's index alone, so that they can be worked out again from
the settings, in any order.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vision_bench.wire.realtime.rollout import SATURATION_CHUNKS

MAX_JITTER = 2.0
"""One interval in six is then more than seven times what was declared."""
MAX_MS = 86_400_000.0
"""A day: nobody waits longer for a chunk, and a clock in ns can count it."""


class FaultKind(StrEnum):
    """What can be made to go wrong at a chunk."""

    STALL = "stall"
    """The chunk comes later by the amount; without one it never comes."""
    ERROR = "error"
    """Instead of the chunk a fatal error; at chunk 0 this is a late refusal."""
    SHORT = "short"
    """The rollout ends before the chunk, and says done as if nothing were missing."""
    EMPTY = "empty"
    """The chunk has no bytes of its own and is not announced: its pictures come with the next."""
    DROP = "drop"
    """Instead of the chunk the connection is gone."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong, once."""

    kind: FaultKind
    chunk: int
    amount_ms: float | None = None
    """Of a stall only."""
    session: int | None = None
    """Number of the session, from 0, in the order of their starts; None for each of them."""


@dataclass(frozen=True, slots=True)
class TimingSettings:
    """What is declared. Times count from a session having the slot."""

    ttfc_ms: float = 1500.0
    """To the first chunk."""
    chunk_ms: float = 700.0
    """Between chunks, once the attention window is full."""
    ramp_chunks: int = SATURATION_CHUNKS
    """Chunks until it is full; 0 switches the ramp off."""
    ramp_start: float = 0.8
    """Interval of chunk 1 as a share of ``chunk_ms``; it grows evenly from there to chunk ``ramp_chunks``."""
    terminal_share: float = 0.95
    """Interval of the last chunk as a share of what it would be: it prepares no successor."""
    jitter: float = 0.0
    """Spread of the intervals, as the standard deviation of their logarithm; the median stays."""
    seed: int = 0
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        for name in ("ttfc_ms", "chunk_ms"):
            value = getattr(self, name)
            if not 0 <= value <= MAX_MS:
                raise ValueError(f"{name} is {value}; it must be 0 or more, and at most a day ({MAX_MS:.0f}).")
        for name in ("ramp_start", "terminal_share"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ValueError(f"{name} is {value}; it must lie between 0 and 1.")
        if not 0 <= self.jitter <= MAX_JITTER:
            raise ValueError(f"jitter is {self.jitter}; it must lie between 0 and {MAX_JITTER:g}.")
        if self.ramp_chunks < 0:
            raise ValueError(f"ramp_chunks is {self.ramp_chunks}; it must be 0 or more.")


@dataclass(frozen=True, slots=True)
class PlannedChunk:
    """One chunk's promise."""

    index: int
    interval_ms: float
    """Since the chunk before; of the first, since the session has the slot. Stalls are in it."""
    due_ms: float | None
    """Since the session has the slot; None when it never comes."""
    fault: FaultKind | None = None
    """What happens in its place or to it; after an error, a short end, a drop or an endless stall no chunk follows."""


def plan_session(settings: TimingSettings, *, num_chunks: int, session: int) -> Iterator[PlannedChunk]:
    """Chunk by chunk what session number ``session`` was declared to do; it ends early where a fault ends it."""
    due_ms = 0.0
    for index in range(num_chunks):
        fault = _fault_at(settings.faults, index, session)
        interval_ms = _interval_ms(settings, index, num_chunks=num_chunks, session=session)
        if fault is not None and fault.kind is FaultKind.STALL:
            if fault.amount_ms is None:
                yield PlannedChunk(index, math.inf, None, fault.kind)
                return
            interval_ms += fault.amount_ms
        due_ms += interval_ms
        yield PlannedChunk(index, interval_ms, due_ms, None if fault is None else fault.kind)
        if fault is not None and fault.kind in {FaultKind.ERROR, FaultKind.SHORT, FaultKind.DROP}:
            return


def read_fault(text: str) -> Fault:
    """``KIND@CHUNK[=MS][#SESSION]``: ``stall@12=3000``, ``error@0``, ``drop@8#1``.

    Raises:
        ValueError: another form, an unknown kind, or an amount for what takes none.
    """
    found = re.fullmatch(r"([a-z]+)@([0-9]{1,9})(?:=([0-9]{1,9}(?:\.[0-9]{1,9})?))?(?:#([0-9]{1,9}))?", text)
    if found is None:
        raise ValueError(f"Fault {text!r} is not KIND@CHUNK[=MS][#SESSION], as in stall@12=3000 or drop@8#1.")
    name, chunk, amount, session = found.groups()
    if name not in list(FaultKind):
        raise ValueError(f"Fault {name!r} does not exist; choose one of {', '.join(FaultKind)}.")
    kind = FaultKind(name)
    if amount is not None and kind is not FaultKind.STALL:
        raise ValueError(f"Fault {text!r} has an amount, which only a stall takes; leave ={amount} out.")
    return Fault(kind, int(chunk), None if amount is None else float(amount), None if session is None else int(session))


def _interval_ms(settings: TimingSettings, index: int, *, num_chunks: int, session: int) -> float:
    if index == 0:
        declared_ms = settings.ttfc_ms
    elif index < settings.ramp_chunks:
        # Chunk 1 is the first with an interval, so the ramp runs from there.
        way = (index - 1) / (settings.ramp_chunks - 1)
        declared_ms = settings.chunk_ms * (settings.ramp_start + (1 - settings.ramp_start) * way)
    else:
        declared_ms = settings.chunk_ms
    if index == num_chunks - 1 and index > 0:
        declared_ms *= settings.terminal_share
    # A generator a chunk: what one chunk draws does not depend on which were asked for before it.
    draw = random.Random(f"{settings.seed}/{session}/{index}")  # noqa: S311 - reproducible, not secret
    return declared_ms * math.exp(settings.jitter * draw.gauss(0.0, 1.0))


def _fault_at(faults: Sequence[Fault], chunk: int, session: int) -> Fault | None:
    """The first fault named for the place."""
    return next((one for one in faults if one.chunk == chunk and one.session in (None, session)), None)
