"""The row of kind ``realtime``: one session of generated video is one request."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vision_bench.bench.clock import Clock
from vision_bench.bench.kind import Kind, Link, Loaded, LoadOptions
from vision_bench.bench.realtime.decoded import VIDEOS, DecodedSession, decode_videos, read_pictures
from vision_bench.bench.realtime.journal import Journal, lost_sessions
from vision_bench.bench.realtime.keys import RealtimeFlags
from vision_bench.bench.realtime.published import published_report
from vision_bench.bench.realtime.record import SessionRecord, observation
from vision_bench.bench.realtime.sessions import startup
from vision_bench.bench.realtime.socket import RealtimeAddress, check_server, read_address, read_truth_lines
from vision_bench.bench.realtime.specification import Prepared, prepare
from vision_bench.bench.realtime.step import StepFacts, StepTally
from vision_bench.bench.realtime.summary import Basis
from vision_bench.bench.realtime.target import RealtimeTarget
from vision_bench.bench.rundir import StepLog, read_records, write_json
from vision_bench.bench.workload import WorkloadFile
from vision_bench.errors import InvalidRequest, UnknownName
from vision_bench.media.lock import held
from vision_bench.wire.authorization import checked_key
from vision_bench.wire.realtime.truth import ChunkTruth, EventTruth, read_truth
from vision_bench.wire.shapes import parse_json

Json = dict[str, Any]

FACTS = "facts.jsonl"
REPORT = "report.json"
FLAGS = (
    "num_chunks",
    "camera_pattern",
    "width",
    "height",
    "fps",
    "flow_shift",
    "prompt",
    "image",
    "model",
    "target_fps",
    "buffer_chunks",
    "warmup_chunks",
)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def _load(file: WorkloadFile, options: LoadOptions) -> Loaded:
    address = read_address(options.need_target("ws://127.0.0.1:8100/v1/realtime/video"))
    checked_key(options.api_key or "")
    flags = {name: options.own[name] for name in FLAGS if name in options.own}
    prepared = prepare(
        file, RealtimeFlags(**flags, seed=options.given_seed, slo_ms=None if options.slo is None else _slo(options.slo))
    )
    values = prepared.values
    facts = {
        "name": values["name"],
        "fingerprint": prepared.fingerprint,
        "values": values,
        "files": prepared.files,
        "url": address.url,
        "basis": asdict(prepared.basis),
        "warnings": list(prepared.warnings),
        "decodes": not options.own.get("no_decode"),
        "saves_video": bool(options.own.get("save_video")),
    }
    workload = prepared.workload
    labels = {
        "model": prepared.model,
        "media": f"{workload.num_chunks} chunks, {workload.width}x{workload.height}",
        "watched_at_fps": prepared.basis.fps,
        "region": values.get("region"),
    }

    @asynccontextmanager
    async def open_target(clock: Clock, run_id: str) -> AsyncIterator[Link]:
        writes = bool(facts["decodes"] or facts["saves_video"])
        opened = _Open(address, prepared, options, videos=options.out / VIDEOS if writes else None)
        try:
            yield opened.link()
        finally:
            opened.close()

    return Loaded(facts, labels, values["timeout_seconds"], False, open_target)


def _slo(text: str) -> float:
    found = re.fullmatch(r"\s*(?:chunk_ms\s*<\s*)?(\d+(?:\.\d+)?)\s*", text)
    if found is None:
        raise InvalidRequest(f"--slo {text!r}: a chunk's deadline is given as 'chunk_ms<750', or as milliseconds")
    return float(found[1])


class _Open:
    """A target in use. The files of the run folder are made when the folder is there."""

    def __init__(self, address: RealtimeAddress, prepared: Prepared, options: LoadOptions, *, videos: Path | None):
        self._address = address
        self._prepared = prepared
        self._options = options
        self._videos = videos
        self._journal: Journal | None = None
        self._hold = ExitStack()
        self._target: RealtimeTarget | None = None
        self._under_way: dict[int, SessionRecord] = {}

    def link(self) -> Link:
        return Link(self._check, self._ready, self._observe, self._told, self._send, progress=self._progress)

    async def _check(self) -> Json:
        models = await check_server(self._address, api_key=self._options.api_key)
        asked = self._prepared.model
        if models is not None and models[0] != asked:  # a request may name the first one alone
            raise UnknownName(f"{self._address.url} serves {models[0]!r}, not {asked!r}; give --model {models[0]}")
        return {"models": models}

    def _ready(self, first: int, count: int) -> None:
        if self._target is not None:
            return
        self._journal = Journal(self._options.out / FACTS)
        if self._videos is not None:
            self._videos.mkdir(exist_ok=True)
            self._hold.enter_context(held(self._videos))  # a report made meanwhile leaves the videos alone
        self._target = RealtimeTarget(
            self._address,
            self._prepared.plan,
            api_key=self._options.api_key,
            journal=self._journal,
            folder=self._videos,
        )

    async def _observe(self) -> str | None:
        return await read_truth_lines(self._address, api_key=self._options.api_key)

    def _told(self, before: str, after: str) -> Json:
        """What a reference server said of the sessions between: those that it did not know before."""
        known = {line.get("request_id") for line in _objects(before)}
        return {"truth": [line for line in _objects(after) if line.get("request_id") not in known]}

    async def _send(self, record: SessionRecord) -> None:
        assert self._target is not None  # noqa: S101 - ready comes first
        self._under_way[record.ordinal] = record
        try:
            await self._target.send(record)
        finally:
            del self._under_way[record.ordinal]

    def _progress(self) -> str:
        chunks = (f"{record.index}: {len(record.chunks)}/{record.num_chunks}" for record in self._under_way.values())
        return f"chunks of session {', '.join(chunks)}" if self._under_way else ""

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
        self._hold.close()


def _objects(text: str) -> list[Json]:
    try:
        found = [parse_json(line) for line in text.splitlines()]
    except ValueError:  # a page of that name that is something else
        return []
    return [line for line in found if isinstance(line, dict)]


def read_sessions(folder: Path) -> Iterator[SessionRecord]:
    """Every session: those that were over, those that a killed run left, each with its pictures."""
    pictures = {one.session: one for one in read_pictures(folder)}
    known = set()
    for record in read_records(folder, SessionRecord):
        known.add(record.ordinal)
        yield _with_pictures(record, pictures.get(record.ordinal))
    for record in lost_sessions(folder / FACTS, known):
        yield _with_pictures(record, pictures.get(record.ordinal))


def _with_pictures(record: SessionRecord, pictures: DecodedSession | None) -> SessionRecord:
    if pictures is not None and pictures.problem is None and record.chunks:
        record.frames = pictures.frames(record)
        record.proof = pictures.proof(record)
    return record


def _tally(manifest: Mapping[str, Any], log: StepLog, last_ns: int) -> StepTally:
    end = log.end
    if end is None:  # killed: what the driver knew is gone, the records are not
        end = {"window_ns": max(last_ns - log.begin["begin_ns"], 1)}
    url = manifest["workload"]["url"]
    facts = StepFacts(
        step=log.step,
        window_ns=end["window_ns"],
        is_complete=log.is_complete,
        offered_rate=log.begin["offered_rate"],
        due=end.get("due"),
        mean_in_flight=end.get("mean_in_flight", 0.0),
        peak_in_flight=end.get("peak_in_flight", 0),
        loop_lag_p99_ms=end.get("loop_lag_p99_ms") or 0.0,
        cpu_share=end.get("cpu_share", 0.0),
        truth=_truth(log.server or {}),
        has_one_clock=any(f"://{host}" in url for host in LOOPBACK),
    )
    return StepTally(facts, Basis(**manifest["workload"]["basis"]))


def _truth(server: Mapping[str, Any]) -> list[ChunkTruth | EventTruth]:
    found = []
    for line in server.get("truth", []):
        try:
            found.append(read_truth(line))
        except ValueError:
            continue
    return found


def _headline(record: SessionRecord) -> dict[str, float | None]:
    session = observation(record)
    gaps_ms = [chunk.inter_arrival_s * 1000 for chunk in session.records[1:]]
    return {
        "TTFC": startup(session.times, session.arrivals).ttfc_ms,
        "interval": sum(gaps_ms) / len(gaps_ms) if gaps_ms else None,
    }


def _finish(folder: Path, manifest: Mapping[str, Any]) -> None:
    facts = manifest["workload"]
    if facts["decodes"]:
        decode_videos(folder, keep=facts["saves_video"])


def _write_more(folder: Path, manifest: Mapping[str, Any], summary: Json) -> None:
    steps = {step["step"] for step in summary["steps"]}
    records = [record for record in read_sessions(folder) if record.step in steps]
    records.sort(key=lambda record: (record.start_sent_ns or record.due_ns, record.ordinal))
    write_json(folder / REPORT, published_report(manifest, records, Basis(**manifest["workload"]["basis"])))


KIND = Kind(
    SessionRecord,
    _load,
    _tally,
    _headline,
    options=frozenset({*FLAGS, "save_video", "no_decode"}),
    totals=lambda manifest, _steps: {"warnings": manifest["workload"]["warnings"]},
    finish=_finish,
    write_more=_write_more,
    records=read_sessions,
    has_long_requests=True,
    sees_warm_up=True,
)
