"""A realtime workload file, with the flags that win over it, as what is sent and what it is measured against.

Two forms of file: our TOML, strict about its keys; and the published benchmark's JSON as it is, which says what a
session asks for and leaves how it is watched to the flags.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from vision_bench.bench.realtime.keys import ROLLOUT_FLAGS, ROLLOUT_KEYS, RealtimeFlags, RealtimeWorkload
from vision_bench.bench.realtime.picture import Picture
from vision_bench.bench.realtime.plan import (
    Patience,
    SessionPlan,
    plan_interactions,
    start_message,
    too_late,
)
from vision_bench.bench.realtime.summary import Basis
from vision_bench.bench.realtime.workload import (
    CAMERA_PATTERNS,
    DEFAULT_WARMUP_CHUNKS,
    Workload,
    workload_from,
)
from vision_bench.bench.workload import WorkloadFile
from vision_bench.errors import InvalidRequest
from vision_bench.wire.realtime.start import MAX_START_CHARACTERS

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A workload ready to be sent.

    Attributes:
        values: every key with the value in force, flags applied; the picture is named, not repeated.
        files: name to SHA-256 of what the workload names.
        warnings: what a reader should know before the run.
    """

    workload: Workload
    plan: SessionPlan
    basis: Basis
    model: str
    values: Json
    files: dict[str, str]
    fingerprint: str
    warnings: tuple[str, ...]


def prepare(file: WorkloadFile, flags: RealtimeFlags) -> Prepared:
    """Check a workload file, the flags and the picture that they name, and make the messages.

    Raises:
        InvalidRequest: something is wrong; the message names file or flag, and the remedy.
    """
    is_published = file.path.suffix == ".json"
    keys, unknown = _published_keys(file) if is_published else (file.checked(RealtimeWorkload), [])
    document = dict(file.values) if is_published else _document(keys)
    files: dict[str, str] = {}
    picture = Picture(None if flags.image is not None else file.path.parent, files)
    given = msgspec.to_builtins(keys) | document | flags.given()
    _check_can_be_sent(file, given)
    try:
        workload = workload_from(
            _with_flags_winning(document, flags), image_resolver=picture.resolve, overrides=flags.given(*ROLLOUT_FLAGS)
        )
        events = [event.event() for event in keys.camera_events]
        interactions = plan_interactions(workload, events)
    except KeyError as problem:
        raise InvalidRequest(
            f"{file.path}: a prompt update has no {problem}; it needs after_chunk and prompt"
        ) from None
    except ValueError as problem:
        raise InvalidRequest(f"{file.path}: {problem}") from problem
    model = keys.model if flags.model is None else flags.model
    start = start_message(workload, model=model, has_live_camera=bool(events))
    basis = _basis(keys, flags, workload)
    plan = _plan(keys, start, workload, interactions)
    values = given | {"fps": workload.fps, "name": keys.name}
    sent = [_without_picture(start), interactions, asdict(plan) | {"start": None, "drop_sessions": keys.drop_sessions}]
    return Prepared(
        workload=workload,
        plan=plan,
        basis=basis,
        model=model,
        values=values | workload.describe() | {"picture": picture.name},
        files=files,
        fingerprint=_hash([sent, files]),
        warnings=(*_ignored(unknown), *_warnings(workload, interactions, plan)),
    )


MAX_CHUNKS = MAX_START_CHARACTERS // len("[[],[],[]]")
"""No camera script of more chunks fits into ``session.start``."""


def _check_can_be_sent(file: WorkloadFile, given: Json) -> None:
    """Refuse what no JSON message carries, and a length that would fill the memory before it were refused."""
    for key, value in given.items():
        if (fault := _fault(key, value)) is not None:
            raise InvalidRequest(f"{file.path}: {fault}")
    num_chunks = given.get("num_chunks")
    if isinstance(num_chunks, int | float) and num_chunks > MAX_CHUNKS:
        raise InvalidRequest(f"{file.path}: num_chunks is {num_chunks}; a session.start holds at most {MAX_CHUNKS}")


def _fault(name: str, value: Any) -> str | None:
    """What of a value is no JSON, by its place: half of a surrogate pair, a number without end, a date of TOML."""
    match value:
        case None | bool() | int():
            return None
        case float():
            return None if math.isfinite(value) else f"{name} is {value}; it must be finite"
        case str():
            halves = [character for character in value if "\ud800" <= character <= "\udfff"]
            return f"{name} holds {halves[0]!r}, which is no character; write UTF-8" if halves else None
        case Mapping():
            parts = [(f"{name}.{key!s}"[:80], part) for key, part in value.items()]
            parts += [(f"a key of {name}", key) for key in value]
        case list() | tuple():
            parts = [(f"{name}[{index}]", part) for index, part in enumerate(value)]
        case _:
            return f"{name} is a {type(value).__name__}, which JSON has not; write it as text"
    return next((fault for place, part in parts if (fault := _fault(place, part)) is not None), None)


def _published_keys(file: WorkloadFile) -> tuple[RealtimeWorkload, list[str]]:
    """The published file says nothing of how a session is watched: our defaults; and the keys that nobody reads."""
    unknown = [key for key in file.values if key not in (*ROLLOUT_KEYS, "name", "kind")]
    return RealtimeWorkload(name=str(file.values["name"]), kind="realtime"), unknown


def _document(keys: RealtimeWorkload) -> Json:
    return {key: value for key in ROLLOUT_KEYS if (value := getattr(keys, key)) not in (None, [], {})}


def _with_flags_winning(document: Json, flags: RealtimeFlags) -> Json:
    """Without the keys that would win over a flag that was given."""
    document = dict(document)
    if flags.image is not None:
        document.pop("image_reference", None)
    script = document.get("camera_action_script")
    if script is not None and (flags.num_chunks is not None or flags.camera_pattern is not None):
        del document["camera_action_script"]
        document["num_chunks"] = len(script)
    if flags.camera_pattern is not None and flags.camera_pattern not in CAMERA_PATTERNS:
        raise InvalidRequest(f"--camera-pattern {flags.camera_pattern}: choose one of {', '.join(CAMERA_PATTERNS)}")
    return document


def _basis(keys: RealtimeWorkload, flags: RealtimeFlags, workload: Workload) -> Basis:
    def chosen(name: str) -> Any:
        flag = getattr(flags, name)
        return getattr(keys, name) if flag is None else flag

    fps = chosen("target_fps")
    basis = Basis(
        fps=float(workload.fps if fps is None else fps),
        width=workload.width,
        height=workload.height,
        buffer_chunks=chosen("buffer_chunks"),
        warmup_chunks=chosen("warmup_chunks"),
        slo_ms=chosen("slo_ms"),
        server_slots=keys.server_slots,
        server_was_fresh=keys.server_was_fresh,
    )
    if not (basis.fps > 0 and math.isfinite(basis.fps)):
        raise InvalidRequest(f"the target fps is {basis.fps:g}; somebody watches at a rate above 0")
    if not 1 <= basis.buffer_chunks <= workload.num_chunks:
        raise InvalidRequest(
            f"buffer chunks are {basis.buffer_chunks}; playback starts with 1 to {workload.num_chunks} (all) of them"
        )
    if basis.warmup_chunks < 0 or (basis.slo_ms is not None and not basis.slo_ms > 0):
        raise InvalidRequest("warm-up chunks must be 0 or more, and a deadline above 0 ms")
    return basis


def _plan(
    keys: RealtimeWorkload, start: Json, workload: Workload, interactions: Mapping[int, list[str]]
) -> SessionPlan:
    text = json.dumps(start, ensure_ascii=False, separators=(",", ":"))
    if len(text) > MAX_START_CHARACTERS:
        raise InvalidRequest(
            f"session.start has {len(text)} characters with its picture; a server takes {MAX_START_CHARACTERS}: "
            "give a smaller picture, or its http(s) address"
        )
    return SessionPlan(
        start=text,
        num_chunks=workload.num_chunks,
        interactions=interactions,
        patience=Patience(keys.first_chunk_timeout_seconds, keys.chunk_timeout_seconds, keys.ping_seconds),
        stop_after_chunk=keys.stop_after_chunk,
        drop_after_chunk=keys.drop_after_chunk,
        drop_sessions=frozenset(keys.drop_sessions),
    )


def _without_picture(start: Json) -> Json:
    return {key: value for key, value in start.items() if key != "image_reference"}


def _hash(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=sorted)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _ignored(unknown: list[str]) -> list[str]:
    return [f"keys that nobody reads: {', '.join(unknown)}"] if unknown else []


def _warnings(workload: Workload, interactions: Mapping[int, list[str]], plan: SessionPlan) -> list[str]:
    found = []
    late = too_late(interactions, workload.num_chunks)
    if late:
        found.append(
            f"what is sent after chunk {', '.join(map(str, late))} can start no more in {workload.num_chunks} chunks, "
            "and may end the session with an error"
        )
    if workload.num_chunks <= DEFAULT_WARMUP_CHUNKS + 1 and plan.stop_after_chunk is None:
        found.append(f"{workload.num_chunks} chunks have no steady interval; 8 are the fewest that have one")
    return found
