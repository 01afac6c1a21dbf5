"""The row of kind ``chat``: one question about clips, frames or pictures, one answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from vision_bench.bench.cameras import CameraLoad
from vision_bench.bench.chat import formulas
from vision_bench.bench.chat.live import Live, playing
from vision_bench.bench.chat.metrics import Tally
from vision_bench.bench.chat.numbers import StepContext
from vision_bench.bench.chat.pool import Pool
from vision_bench.bench.chat.preprocess_pairs import Pairs, check_pairs
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.chat.slo import read_slo
from vision_bench.bench.chat.stages import told_between
from vision_bench.bench.chat.target import Address, ChatTarget, read_address
from vision_bench.bench.chat.workload import Prepared, prepare, validity
from vision_bench.bench.choice import choice_path, read_choice, standing
from vision_bench.bench.clock import Clock
from vision_bench.bench.freshness import sustained
from vision_bench.bench.kind import Kind, Link, Loaded, LoadOptions
from vision_bench.bench.requests import Window
from vision_bench.bench.rundir import StepLog
from vision_bench.bench.workload import WorkloadFile
from vision_bench.errors import InvalidRequest

if TYPE_CHECKING:
    from vision_bench.bench.chat.receipts import Receipts
    from vision_bench.bench.chat.scoring import Scoring

Json = dict[str, Any]


def _load(file: WorkloadFile, options: LoadOptions) -> Loaded:
    address = read_address(options.need_target("http://127.0.0.1:8001/chat"))
    batch_size: int | None = options.own.get("batch")
    is_batch = address.wire == "batch"
    if is_batch != (batch_size is not None):
        raise InvalidRequest(
            f"{address.url} takes batches; say how many items one holds with --batch N"
            if is_batch
            else f"--batch belongs to /chat/batch; {address.url} takes one chat at a time"
        )
    pairs: int | None = options.own.get("preprocess_pairs")
    if options.slo is not None:
        read_slo(options.slo)
    prepared = prepare(
        file,
        can_stream=not is_batch,
        salt=options.seed,
        batch_size=batch_size,
        made_dir=options.made_dir,
    )
    workload = prepared.workload
    if is_batch and workload.media == "live":
        raise InvalidRequest(f"{address.url} takes batches, and no references to streams; use /v1/chat/completions")
    if pairs is not None:
        check_pairs(workload.media, workload.cache, address.wire)
    facts = {
        "name": workload.name,
        "fingerprint": prepared.fingerprint,
        "values": msgspec.to_builtins(workload),
        "files": prepared.files,
        "bodies": list(prepared.body_sha256),
        "url": address.url,
        "wire": address.wire,
        "batch_size": batch_size,
        "streams": workload.stream and not is_batch,
        "slo": options.slo,
        "items": list(prepared.items),
        "labels": prepared.labels,
    }
    labels = {
        "model": workload.model,
        "media": workload.media_shape,
        "encode": workload.encode,
        "region": workload.region,
    }
    choice = read_choice(choice_path(file.path))

    @asynccontextmanager
    async def open_target(clock: Clock, run_id: str) -> AsyncIterator[Link]:
        async with AsyncExitStack() as stack:
            pool = await stack.enter_async_context(Pool(address.host, address.port, is_secure=address.is_secure))
            if isinstance(workload.live, Live) and prepared.film is not None:
                parts = urlsplit(address.url)
                gateway = f"{parts.scheme}://{parts.netloc}"
                film = playing(workload.live, prepared.film, gateway=gateway, api_key=options.api_key)
                prepared.bodies.stream = await stack.enter_async_context(film)
            link = _link(prepared, address, pool, clock, run_id, options, pairs)
            yield link if choice is None else link._replace(check=_with_standing(link.check, choice, facts))

    return Loaded(facts, labels, workload.timeout_seconds, prepared.bodies.need_a_count, open_target)


def _link(  # noqa: PLR0917 - what is joined here has nothing in common
    prepared: Prepared, address: Address, pool: Pool, clock: Clock, run_id: str, options: LoadOptions, pairs: int | None
) -> Link:
    target = ChatTarget(
        address,
        pool,
        prepared.bodies,
        clock=clock,
        timeout_seconds=prepared.workload.timeout_seconds,
        run_id=run_id,
        api_key=options.api_key,
        is_valid=None if prepared.schema is None else validity(prepared.schema),
    )

    async def check() -> Json:
        workload = prepared.workload
        told: Json = (await target.check(workload.model))._asdict()
        if workload.system is not None:
            told["system_tokens"] = await target.count_system(workload.model, workload.system)
        return told

    async def probe() -> Json:
        return await Pairs(prepared.bodies, target.send_item, clock.now_ns, options.seed).run(pairs or 0)

    return Link(
        check, prepared.bodies.ready, target.observe, told_between, target.send, None if pairs is None else probe
    )


def _with_standing(check: Callable[[], Awaitable[Json]], choice: Json, facts: Json) -> Callable[[], Awaitable[Json]]:
    """A check that also says how the workload stands to the envelope that was chosen for it."""

    async def checked() -> Json:
        told = await check()
        return told | {"envelope": standing(choice, facts, told)}

    return checked


def _totals(manifest: Mapping[str, Any], steps: list[Json]) -> Json:
    return {
        "live": sustained(steps),
        "preprocess_pairs": manifest.get("probe"),
        "envelope": manifest.get("server", {}).get("envelope"),
    }


def _tally(manifest: Mapping[str, Any], step: StepLog, last_ns: int) -> Tally:
    facts = manifest["workload"]
    values = facts["values"]
    is_fixed = bool(values["extra"].get("ignore_eos"))
    budget = values["max_tokens"] or values["max_completion_tokens"]
    context = StepContext(
        Window.of(step.begin, step.end, last_ns),
        streams=facts["streams"],
        is_cold=values["state"] == "cold",
        fixed_tokens=budget if is_fixed else None,
        slo=read_slo(facts["slo"]) if facts["slo"] else (),
        server=step.server or {},
        preprocess_ms=(manifest.get("probe") or {}).get("media_less_text_ms"),
        cameras=CameraLoad(**cameras) if (cameras := step.begin.get("cameras")) else None,
        system_tokens=manifest.get("server", {}).get("system_tokens"),
        scoring=_scoring(facts, manifest.get("folder")),
        receipts=_receipts(values),
    )
    return Tally(context)


def _scoring(facts: Mapping[str, Any], folder: str | None) -> Scoring | None:
    """How answers are scored; None for a workload without labels, which then pays for no scorer."""
    if facts.get("labels") is None:
        return None
    from vision_bench.bench.chat.scoring import Scoring  # noqa: PLC0415
    from vision_bench.bench.chat.verdicts import read_verdicts  # noqa: PLC0415

    return Scoring.of_manifest(facts, {} if folder is None else read_verdicts(Path(folder)))


def _receipts(values: Mapping[str, Any]) -> Receipts | None:
    """What joins receipts; None for a workload about no live stream, whose answers have none."""
    if values.get("media") != "live":
        return None
    from vision_bench.bench.chat.receipts import Receipts  # noqa: PLC0415

    return Receipts()


def _headline(record: ChatRecord) -> dict[str, float | None]:
    return {"TTFT": formulas.ttft_ms(record), "e2e": formulas.e2e_ms(record)}


KIND = Kind(
    ChatRecord,
    _load,
    _tally,
    _headline,
    options=frozenset({"batch", "preprocess_pairs"}),
    takes_cameras=True,
    is_compared=True,
    totals=_totals,
)
