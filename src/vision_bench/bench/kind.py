"""What a kind of benchmark is to the rest: the row of ``kinds``, and what stands between it and the driver.

The driver, the run folder and the verbs know a kind through these types alone. A kind fills in its own record class,
prepares its workload, opens its target and makes numbers of its records; it never sees a schedule.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from vision_bench.bench.clock import Clock
from vision_bench.bench.record import Record
from vision_bench.bench.rundir import StepLog, read_records
from vision_bench.bench.workload import WorkloadFile
from vision_bench.errors import InvalidRequest

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What a kind may want to know of a run before it prepares a workload.

    Attributes:
        target: where to; its scheme and path are the kind's to read. None where none was given.
        own: the kind's own options by name, those that were given (``Kind.options``).
        made_dir: where media that take long to make are kept for another run; None keeps none.
        given_seed: the seed as the user gave it; None where it is the default.
        out: the run folder; it is made after the target was opened.
    """

    target: str | None
    seed: str
    given_seed: int | None = None
    out: Path = Path()
    slo: str | None = None
    api_key: str | None = None
    own: Mapping[str, Any] = field(default_factory=dict)
    made_dir: Path | None = None

    def need_target(self, example: str) -> str:
        """The target of a kind that cannot do without.

        Raises:
            InvalidRequest: none was given.
        """
        if self.target is None:
            raise InvalidRequest(f"this workload needs a server; give --target, such as {example}")
        return self.target


async def no_variants(_variant: Mapping[str, Any]) -> None:
    """``Link.use`` of a target that is one thing only."""


class Link(NamedTuple):
    """An open target.

    Attributes:
        check: before the clock starts; gives what the server tells of itself.
        ready: before each step: make what so many requests from this ordinal on need.
        observe: before and after each step: what the server counts, in any form, or None.
        told: what two of those say of the step between them.
        probe: measured once, before the first step of a new run; its ``ordinals`` are used up by it.
        send: send what a record stands for and fill the record in, whatever happens; only a bug raises.
        progress: how what is under way stands, for the line of progress.
        use: before a step that has a variant: be that.
    """

    check: Callable[[], Awaitable[Json]]
    ready: Callable[[int, int], None]
    observe: Callable[[], Awaitable[Any]]
    told: Callable[[Any, Any], Json]
    send: Callable[[Any], Awaitable[None]]
    probe: Callable[[], Awaitable[Json]] | None = None
    progress: Callable[[], str] = lambda: ""
    use: Callable[[Mapping[str, Any]], Awaitable[None]] = no_variants


@dataclass(frozen=True, slots=True)
class Loaded:
    """A workload whose bytes are ready.

    Attributes:
        facts: what the manifest keeps of it; all that ``Kind.tally`` needs is in there. It has ``name``,
            ``fingerprint``, ``url`` (or None) and ``values``, the workload's own keys.
        labels: what names every step besides its load: model, media shape, region.
        needs_counts: every step must say how many requests it has.
        variants: what the target is to be in turn; each step runs once under each, and has it among its labels.
    """

    facts: Json
    labels: Json
    timeout_seconds: float
    needs_counts: bool
    open: Callable[[Clock, str], AbstractAsyncContextManager[Link]]
    variants: Sequence[Json] = ()


class StepTally(Protocol):
    """A step's records added up one by one, in any order, so that none needs to be kept."""

    def add(self, record: Any) -> None: ...

    def summary(self) -> Json:
        """The step's numbers, strict JSON.

        Whatever the kind: ``requests`` (due, sent, ok, failed), ``verdict``, ``verdict_reason``, ``offered_rate``,
        ``achieved_rate``, ``is_complete``, ``duration_seconds``, and ``in_flight`` with its ``mean``.
        """
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """One row.

    Attributes:
        tally: for one step, from the manifest (``folder`` is where it lies) and the step's lines. Its third argument is
            the last stamp of the step's records; it stands for the end of a step that was killed.
        headline: one record's numbers for the line of progress, by name.
        options: names of the options that belong to this kind; another kind refuses them.
        takes_cameras: its tally knows frames that were let go for newer ones; another kind refuses ``--cameras``.
        is_compared: two of its runs can be held against each other; another kind refuses ``--against``.
        totals: what the summary says of all steps together, from the manifest and the steps; keys of its own.
        finish: called before the summary is written: work on the folder that was kept out of the run.
        write_more: called when the summary stands, with folder, manifest and summary: files of the kind's own.
        records: all that the folder knows of requests; None: the lines of ``records.jsonl``.
        has_long_requests: one takes as long as a step of others. Without a load it is sent alone, without an end each
            lane sends one, warming up is done one after the other, and the last is waited for as long as it may take.
        sees_warm_up: a step's tally is also given the records of the warm-up before it.
    """

    record: type[Record]
    load: Callable[[WorkloadFile, LoadOptions], Loaded]
    tally: Callable[[Mapping[str, Any], StepLog, int], StepTally]
    headline: Callable[[Any], dict[str, float | None]]
    options: frozenset[str] = frozenset()
    takes_cameras: bool = False
    is_compared: bool = False
    totals: Callable[[Mapping[str, Any], list[Json]], Json] = lambda _manifest, _steps: {}
    finish: Callable[[Path, Mapping[str, Any]], None] = lambda _folder, _manifest: None
    write_more: Callable[[Path, Mapping[str, Any], Json], None] = lambda _folder, _manifest, _summary: None
    records: Callable[[Path], Iterator[Record]] | None = None
    has_long_requests: bool = False
    sees_warm_up: bool = False

    def read(self, folder: Path) -> Iterator[Record]:
        """Every request that the folder knows of.

        Raises:
            InvalidRequest: a line that is no record of this kind.
        """
        return read_records(folder, self.record) if self.records is None else self.records(folder)
