"""The table of kinds: how a workload is loaded, its target opened, its steps summarised.

A new benchmark is one folder and one row here; driver, run folder and verbs stay as they are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec

from vision_bench.bench.chat import formulas
from vision_bench.bench.chat.metrics import StepContext, Tally
from vision_bench.bench.chat.pool import Pool
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.chat.slo import read_slo
from vision_bench.bench.chat.stages import told_between
from vision_bench.bench.chat.target import Address, ChatTarget, read_address
from vision_bench.bench.chat.workload import Prepared, prepare, validity
from vision_bench.bench.clock import Clock
from vision_bench.bench.record import Record
from vision_bench.bench.rundir import StepLog
from vision_bench.bench.workload import WorkloadFile
from vision_bench.errors import InvalidRequest, UnknownName

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What a kind may want to know of a run before it prepares a workload."""

    target: str
    seed: str
    slo: str | None = None
    batch_size: int | None = None
    api_key: str | None = None


class Link(NamedTuple):
    """An open target.

    Attributes:
        check: before the clock starts; gives what the server tells of itself.
        ready: before each step: make what so many requests from this ordinal on need.
        observe: before and after each step: what the server counts, in any form, or None.
        told: what two of those say of the step between them.
    """

    check: Callable[[], Awaitable[Json]]
    ready: Callable[[int, int], None]
    observe: Callable[[], Awaitable[Any]]
    told: Callable[[Any, Any], Json]
    send: Callable[[Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A workload whose bytes are ready.

    Attributes:
        facts: what the manifest keeps of it; all that ``Kind.summarise`` needs is in there.
        labels: what names every step besides its load: model, media shape, region.
        needs_counts: every step must say how many requests it has.
    """

    facts: Json
    labels: Json
    timeout_seconds: float
    needs_counts: bool
    open: Callable[[Clock, str], AbstractAsyncContextManager[Link]]


class StepTally(Protocol):
    """A step's records added up one by one, in any order, so that none needs to be kept."""

    def add(self, record: Any) -> None: ...

    def summary(self) -> Json:
        """The step's numbers, strict JSON."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """One row.

    Attributes:
        tally: for one step, from the manifest and the step's lines. Its third argument is the last stamp of the step's
            records; it stands for the end of a step that was killed.
        headline: one record's numbers for the line of progress, by name.
    """

    record: type[Record]
    load: Callable[[WorkloadFile, LoadOptions], Loaded]
    tally: Callable[[Mapping[str, Any], StepLog, int], StepTally]
    headline: Callable[[Any], dict[str, float | None]]


# --- chat


def _load_chat(file: WorkloadFile, options: LoadOptions) -> Loaded:
    address = read_address(options.target)
    is_batch = address.wire == "batch"
    if is_batch != (options.batch_size is not None):
        raise InvalidRequest(
            f"{address.url} takes batches; say how many items one holds with --batch N"
            if is_batch
            else f"--batch belongs to /chat/batch; {address.url} takes one chat at a time"
        )
    if options.slo is not None:
        read_slo(options.slo)
    prepared = prepare(file, can_stream=not is_batch, salt=options.seed, batch_size=options.batch_size)
    workload = prepared.workload
    facts = {
        "name": workload.name,
        "fingerprint": prepared.fingerprint,
        "values": msgspec.to_builtins(workload),
        "files": prepared.files,
        "bodies": list(prepared.body_sha256),
        "url": address.url,
        "wire": address.wire,
        "batch_size": options.batch_size,
        "streams": workload.stream and not is_batch,
        "slo": options.slo,
    }
    labels = {
        "model": workload.model,
        "media": workload.media_shape,
        "encode": workload.encode,
        "region": workload.region,
    }

    @asynccontextmanager
    async def open_target(clock: Clock, run_id: str) -> AsyncIterator[Link]:
        async with Pool(address.host, address.port, is_secure=address.is_secure) as pool:
            yield _chat_link(prepared, address, pool, clock, run_id, options.api_key)

    return Loaded(facts, labels, workload.timeout_seconds, prepared.bodies.need_a_count, open_target)


def _chat_link(  # noqa: PLR0917 - what is joined here has nothing in common
    prepared: Prepared, address: Address, pool: Pool, clock: Clock, run_id: str, api_key: str | None
) -> Link:
    target = ChatTarget(
        address,
        pool,
        prepared.bodies,
        clock=clock,
        timeout_seconds=prepared.workload.timeout_seconds,
        run_id=run_id,
        api_key=api_key,
        is_valid=None if prepared.schema is None else validity(prepared.schema),
    )

    async def check() -> Json:
        return {"models": (await target.check(prepared.workload.model)).models}

    return Link(check, prepared.bodies.ready, target.observe, told_between, target.send)


def _chat_tally(manifest: Mapping[str, Any], step: StepLog, last_ns: int) -> Tally:
    facts, end = manifest["workload"], step.end
    values = facts["values"]
    is_fixed = bool(values["extra"].get("ignore_eos"))
    budget = values["max_tokens"] or values["max_completion_tokens"]
    if end is None:  # killed: what the driver knew is gone, the records are not
        start_ns = step.begin["begin_ns"]
        end = {"start_ns": start_ns, "window_ns": max(last_ns - start_ns, 1)}
    context = StepContext(
        start_ns=end["start_ns"],
        window_ns=end["window_ns"],
        is_complete=step.is_complete,
        offered_rate=step.begin["offered_rate"],
        due=end.get("due"),
        streams=facts["streams"],
        mean_in_flight=end.get("mean_in_flight", 0.0),
        loop_lag_p99_ms=end.get("loop_lag_p99_ms") or 0.0,
        cpu_share=end.get("cpu_share", 0.0),
        is_cold=values["state"] == "cold",
        fixed_tokens=budget if is_fixed else None,
        slo=read_slo(facts["slo"]) if facts["slo"] else (),
        server=step.server or {},
    )
    return Tally(context)


def _chat_headline(record: ChatRecord) -> dict[str, float | None]:
    return {"TTFT": formulas.ttft_ms(record), "e2e": formulas.e2e_ms(record)}


KINDS = {"chat": Kind(ChatRecord, _load_chat, _chat_tally, _chat_headline)}


def kind_named(name: str) -> Kind:
    """The row of a kind.

    Raises:
        UnknownName: there is none.
    """
    try:
        return KINDS[name]
    except KeyError:
        raise UnknownName(f"no benchmark of kind {name!r}; known are {', '.join(KINDS)}") from None
