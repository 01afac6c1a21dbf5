"""The keys of a realtime workload file and the flags that win over them: names, defaults, and what is allowed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import msgspec

from vision_bench.bench.realtime.plan import CameraEvent, Patience
from vision_bench.bench.realtime.workload import DEFAULT_MODEL, DEFAULT_WARMUP_CHUNKS
from vision_bench.bench.workload import Common, require

Json = dict[str, Any]

ROLLOUT_KEYS = (
    "prompt",
    "negative_prompt",
    "image",
    "image_reference",
    "camera_action_script",
    "num_chunks",
    "camera_pattern",
    "width",
    "height",
    "fps",
    "seed",
    "flow_shift",
    "prompt_updates",
    "extra_params",
)
"""Keys of the published file; they mean the same in ours."""

ROLLOUT_FLAGS = ("num_chunks", "camera_pattern", "width", "height", "fps", "seed", "flow_shift", "prompt", "image")
"""Of them, those that a flag may give."""


class CameraEventKeys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One live camera command of the file."""

    after_chunk: int
    mode: Literal["velocity", "target"] = "velocity"
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    transition_chunks: int | None = None

    def event(self) -> CameraEvent:
        """As it will be sent."""
        return CameraEvent(self.after_chunk, self.mode, self.translation, self.rotation, self.transition_chunks)


class RealtimeWorkload(Common, frozen=True, kw_only=True):
    """A realtime workload, as its file says it (docs/workloads.md).

    Attributes:
        timeout_seconds: how long after the last arrival of an open loop sessions are waited for; each has deadlines of
            its own.
        target_fps: the rate at which somebody watches; None: that of the file.
        buffer_chunks: chunks that must be there before playback starts.
        warmup_chunks: chunks that the steady numbers leave out.
        slo_ms: deadline of a steady chunk; None: its playing time.
        camera_events: live commands; with them no camera script is sent.
        stop_after_chunk: ``session.stop`` is sent once this chunk is there.
        drop_after_chunk, drop_sessions: these sessions of a step leave without a word once this chunk is there.
        server_slots: sessions that the server generates at a time.
        server_was_fresh: the first session of the run is the server's first.
    """

    timeout_seconds: float = 3600.0
    model: str = DEFAULT_MODEL
    prompt: str | None = None
    negative_prompt: str | None = None
    image: str | None = None
    image_reference: str | None = None
    camera_action_script: list[list[list[str]]] | None = None
    num_chunks: int | None = None
    camera_pattern: str | None = None
    width: int | None = None
    height: int | None = None
    fps: float | None = None
    seed: int | None = None
    flow_shift: float | None = None
    prompt_updates: list[dict[str, Any]] = []  # noqa: RUF012 - msgspec copies it
    extra_params: dict[str, Any] = {}  # noqa: RUF012
    target_fps: float | None = None
    buffer_chunks: int = 1
    warmup_chunks: int = DEFAULT_WARMUP_CHUNKS
    slo_ms: float | None = None
    camera_events: list[CameraEventKeys] = []  # noqa: RUF012
    stop_after_chunk: int | None = None
    drop_after_chunk: int | None = None
    drop_sessions: list[int] = []  # noqa: RUF012
    first_chunk_timeout_seconds: float = Patience().first_chunk_seconds
    chunk_timeout_seconds: float = Patience().chunk_seconds
    ping_seconds: float = Patience().ping_seconds
    server_slots: int = 1
    server_was_fresh: bool = False

    def __post_init__(self) -> None:
        Common.__post_init__(self)
        require(self.kind == "realtime", f"kind is {self.kind!r}, not 'realtime'")
        require(self.target_fps is None or self.target_fps > 0, "target_fps must be above 0")
        require(self.buffer_chunks >= 1, "buffer_chunks must be 1 or more")
        require(self.warmup_chunks >= 0, "warmup_chunks must be 0 or more")
        require(self.slo_ms is None or self.slo_ms > 0, "slo_ms must be above 0")
        require(self.server_slots >= 1, "server_slots must be 1 or more")
        require(
            min(self.first_chunk_timeout_seconds, self.chunk_timeout_seconds, self.ping_seconds) > 0,
            "first_chunk_timeout_seconds, chunk_timeout_seconds and ping_seconds must be above 0",
        )
        require(
            (self.drop_after_chunk is None) == (not self.drop_sessions),
            "drop_after_chunk and drop_sessions belong together: which sessions leave, and when",
        )


@dataclass(frozen=True, slots=True)
class RealtimeFlags:
    """What the command line says. None is not given; 0 and empty text are given, and win over the file."""

    num_chunks: int | None = None
    camera_pattern: str | None = None
    width: int | None = None
    height: int | None = None
    fps: float | None = None
    seed: int | None = None
    flow_shift: float | None = None
    prompt: str | None = None
    image: str | None = None
    model: str | None = None
    target_fps: float | None = None
    buffer_chunks: int | None = None
    warmup_chunks: int | None = None
    slo_ms: float | None = None

    def given(self, *names: str) -> Json:
        """Those of ``names`` that were given; of all names without any."""
        chosen = names or tuple(field.name for field in fields(self))
        return {name: value for name in chosen if (value := getattr(self, name)) is not None}
