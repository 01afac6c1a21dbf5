"""What every session of a run does: the request, and what is sent at which chunk boundary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vision_bench.bench.realtime.interactions import PIPELINE_CHUNKS
from vision_bench.bench.realtime.workload import Workload
from vision_bench.wire.realtime.control import camera_interaction

SCRIPT = "camera_action_script"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long what is awaited may take."""

    first_chunk_seconds: float = 900.0
    """From ``session.start``: a queue and a compilation are in it."""
    chunk_seconds: float = 300.0
    """From one chunk to the next, and from the last one to done. Replies to pings do not extend it."""
    ping_seconds: float = 20.0
    """Between pings, from ``video.start`` on: a server takes a minute without one for a stall."""
    doubt_seconds: float = 5.0
    """After an error that answers nothing: until it is the end."""


@dataclass(frozen=True, slots=True)
class CameraEvent:
    """A camera command, sent live once chunk ``after_chunk`` has arrived."""

    after_chunk: int
    mode: str = "velocity"
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    transition_chunks: int | None = None

    @property
    def event_id(self) -> str:
        """Unique in a session, and unlike a prompt update's at the same boundary."""
        return f"camera-{self.after_chunk}"

    def to_payload(self) -> dict[str, Any]:
        """The ``session.interaction`` message."""
        return camera_interaction(
            event_id=self.event_id,
            mode=self.mode,
            translation=self.translation,
            rotation=self.rotation,
            transition_chunks=self.transition_chunks,
        ).to_message()


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """One session as it will be held.

    Attributes:
        start: the first message.
        interactions: messages by the chunk after which they are sent, in this order.
        stop_after_chunk: ``session.stop`` is sent once this chunk is there.
        drop_after_chunk, drop_sessions: sessions of these numbers (in their step, from 0) drop the connection
            without a word once this chunk is there.
    """

    start: str
    num_chunks: int
    interactions: Mapping[int, Sequence[str]]
    patience: Patience = Patience()
    stop_after_chunk: int | None = None
    drop_after_chunk: int | None = None
    drop_sessions: frozenset[int] = frozenset()

    def is_dropped(self, index: int, received: int) -> bool:
        """Whether session number ``index`` of a step leaves without a word, now that chunk ``received`` is there."""
        return self.drop_after_chunk is not None and received >= self.drop_after_chunk and index in self.drop_sessions


def plan_interactions(workload: Workload, camera_events: Sequence[CameraEvent]) -> dict[int, list[str]]:
    """The messages at each boundary: the prompt first, then the camera.

    Raises:
        ValueError: two camera events at one boundary, or one that is never sent.
    """
    found: dict[int, list[str]] = {}
    for update in workload.prompt_updates:
        found.setdefault(update.after_chunk, []).append(json.dumps(update.to_payload()))
    seen: set[int] = set()
    for event in camera_events:
        if event.after_chunk in seen:
            raise ValueError(f"two camera events come after chunk {event.after_chunk}; their ids would be one")
        seen.add(event.after_chunk)
        if not 0 <= event.after_chunk < workload.num_chunks:
            raise ValueError(
                f"the camera event after chunk {event.after_chunk} is never sent: chunks are 0 to"
                f" {workload.num_chunks - 1}"
            )
        found.setdefault(event.after_chunk, []).append(json.dumps(event.to_payload()))
    return found


def too_late(interactions: Mapping[int, Sequence[str]], num_chunks: int) -> list[int]:
    """Boundaries after which nothing can start any more, and an event may end the session with an error."""
    return sorted(after for after in interactions if after > num_chunks - 1 - PIPELINE_CHUNKS)


def start_message(workload: Workload, *, model: str, has_live_camera: bool) -> dict[str, Any]:
    """``session.start``. A script and live camera events exclude each other: with those the script is left out."""
    payload = workload.session_start_payload(model)
    if has_live_camera:
        payload["extra_params"].pop(SCRIPT, None)
    return payload
