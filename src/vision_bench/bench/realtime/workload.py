"""What one session of generated video asks the server for, and the files that say so.

Names, meanings and error conditions are those of the published LingBot-World benchmark, so that its workload files run
here and its numbers mean the same. Three of its slips are not repeated: a fractional fps keeps its fraction, a prompt
that is JSON null is an error instead of the text "None", and (in ``metrics``) a rate of 0 is an error whatever else is
given. docs/realtime.md says more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vision_bench.bench.realtime.camera import CAMERA_PATTERNS, build_camera_script, camera_actions_for_chunk
from vision_bench.wire.realtime.rollout import (
    FRAMES_PER_BLOCK,
    SATURATION_CHUNKS,
    TEMPORAL_COMPRESSION,
    check_camera_script,
    chunks_for_num_frames,
    num_frames_for_chunks,
    pixel_frames_in_chunk,
)

__all__ = [
    "CAMERA_PATTERNS",
    "DEFAULT_FLOW_SHIFT",
    "DEFAULT_FPS",
    "DEFAULT_HEIGHT",
    "DEFAULT_MODEL",
    "DEFAULT_PROMPT",
    "DEFAULT_SEED",
    "DEFAULT_WARMUP_CHUNKS",
    "DEFAULT_WIDTH",
    "FRAMES_PER_BLOCK",
    "TEMPORAL_COMPRESSION",
    "PromptUpdate",
    "Workload",
    "build_camera_script",
    "camera_actions_for_chunk",
    "chunks_for_num_frames",
    "default_workload",
    "load_workload",
    "num_frames_for_chunks",
    "pixel_frames_in_chunk",
    "workload_from",
]

DEFAULT_WARMUP_CHUNKS = SATURATION_CHUNKS
"""Chunks that are left out of the steady numbers: until the attention window is full, each costs more than the last."""

DEFAULT_MODEL = "robbyant/lingbot-world-v2-14b-causal-fast-diffusers"
# Workload data: results under another prompt are not comparable with published ones.
DEFAULT_PROMPT = "The camera moves slowly forward through the scene."
# The server's cache has a fixed geometry: a deployment serves one size, and this is the usual one.
DEFAULT_WIDTH = 832
DEFAULT_HEIGHT = 480
DEFAULT_FPS = 16
DEFAULT_FLOW_SHIFT = 5.0
DEFAULT_SEED = 42
DEFAULT_TRANSITION_CHUNKS = 3

_SIZE_MULTIPLE = 16


@dataclass(frozen=True, slots=True)
class PromptUpdate:
    """A new prompt, sent in mid-rollout once chunk ``after_chunk`` has arrived.

    Raises:
        ValueError: a negative chunk or transition, or a prompt without text.
    """

    after_chunk: int
    prompt: str
    transition_chunks: int = DEFAULT_TRANSITION_CHUNKS

    def __post_init__(self) -> None:
        if self.after_chunk < 0:
            raise ValueError(f"PromptUpdate.after_chunk is {self.after_chunk}; chunks are counted from 0.")
        if not self.prompt.strip():
            raise ValueError("PromptUpdate.prompt is blank; say what the scene changes to.")
        if self.transition_chunks < 0:
            raise ValueError(f"PromptUpdate.transition_chunks is {self.transition_chunks}; 0 switches at once.")

    def to_payload(self) -> dict[str, Any]:
        """The ``session.interaction`` message; its event id is made of the chunk, hence unique in a rollout."""
        return {
            "type": "session.interaction",
            "interaction": {
                "event_id": f"chunk-{self.after_chunk}",
                "event": {"prompt": self.prompt},
                "transition_chunks": self.transition_chunks,
            },
        }


@dataclass(frozen=True, slots=True)
class Workload:
    """One rollout. The camera script's length decides how many chunks and frames are asked for.

    Raises:
        ValueError: a blank prompt, no image, sides that are not positive multiples of 16, a rate that is not above 0,
            a malformed script, or two prompt updates after one chunk or one after the last.
    """

    prompt: str
    image_reference: str
    """An ``http(s)`` or ``data:`` URL of the first picture."""
    camera_script: list[list[list[str]]]
    width: int = DEFAULT_WIDTH
    height: int = DEFAULT_HEIGHT
    fps: float = DEFAULT_FPS
    """The rate that the server writes into the file; a whole number is kept as ``int``."""
    seed: int = DEFAULT_SEED
    flow_shift: float = DEFAULT_FLOW_SHIFT
    negative_prompt: str | None = None
    """Sent unless None: empty text is a value."""
    prompt_updates: tuple[PromptUpdate, ...] = ()
    extra_params: Mapping[str, Any] = field(default_factory=dict)
    """Merged over ours, unchecked: a script in here replaces the rollout's and may not fit its frame count."""

    def __post_init__(self) -> None:
        if not self.prompt.strip():
            raise ValueError("Workload.prompt is blank; describe the scene.")
        if not self.image_reference:
            raise ValueError("Workload.image_reference is empty; the rollout starts from a picture.")
        for name, side in (("width", self.width), ("height", self.height)):
            if side <= 0 or side % _SIZE_MULTIPLE:
                raise ValueError(f"Workload.{name} is {side}; it must be a positive multiple of {_SIZE_MULTIPLE}.")
        if not (self.fps > 0 and math.isfinite(self.fps)):
            raise ValueError(f"Workload.fps is {self.fps}; it must be above 0.")
        object.__setattr__(self, "fps", _whole_as_int(self.fps))
        object.__setattr__(self, "camera_script", check_camera_script(self.camera_script))
        self._check_updates()

    def _check_updates(self) -> None:
        seen: set[int] = set()
        for update in self.prompt_updates:
            if update.after_chunk in seen:
                raise ValueError(f"Two prompt updates come after chunk {update.after_chunk}; their ids would be one.")
            seen.add(update.after_chunk)
            if update.after_chunk >= self.num_chunks:
                raise ValueError(
                    f"The prompt update after chunk {update.after_chunk} is never sent: the rollout's last chunk is"
                    f" {self.num_chunks - 1}."
                )

    @property
    def num_chunks(self) -> int:
        """Chunks of the rollout."""
        return len(self.camera_script)

    @property
    def num_frames(self) -> int:
        """Pictures of the rollout."""
        return num_frames_for_chunks(self.num_chunks)

    @property
    def video_seconds(self) -> float:
        """Length of the finished video at its own rate."""
        return self.num_frames / self.fps

    def session_start_payload(self, model: str) -> dict[str, Any]:
        """The ``session.start`` message for ``WS /v1/realtime/video``."""
        payload: dict[str, Any] = {
            "type": "session.start",
            "model": model,
            "prompt": self.prompt,
            "image_reference": {"image_url": self.image_reference},
            "width": self.width,
            "height": self.height,
            "num_frames": self.num_frames,
            "fps": self.fps,
            "seed": self.seed,
            "extra_params": {
                "flow_shift": self.flow_shift,
                "camera_action_script": self.camera_script,
                **self.extra_params,
            },
        }
        if self.negative_prompt is not None:
            payload["negative_prompt"] = self.negative_prompt
        return payload

    def describe(self) -> dict[str, Any]:
        """The workload's sizes, as the published report prints them: without texts, image and script."""
        return {
            "num_chunks": self.num_chunks,
            "num_frames": self.num_frames,
            "width": self.width,
            "height": self.height,
            "fps": self.fps,
            "seed": self.seed,
            "flow_shift": self.flow_shift,
            "video_seconds": self.video_seconds,
            "prompt_updates": [
                {"after_chunk": update.after_chunk, "transition_chunks": update.transition_chunks}
                for update in self.prompt_updates
            ],
        }


def default_workload(
    *,
    image_reference: str,
    num_chunks: int,
    camera_pattern: str = "forward",
    prompt: str = DEFAULT_PROMPT,
    width: int = DEFAULT_WIDTH,
    height: int = DEFAULT_HEIGHT,
    fps: float = DEFAULT_FPS,
    seed: int = DEFAULT_SEED,
    flow_shift: float = DEFAULT_FLOW_SHIFT,
    negative_prompt: str | None = None,
) -> Workload:
    """The built-in rollout: a fixed prompt and a script made from a pattern. Raises as :class:`Workload` does."""
    return Workload(
        prompt=prompt,
        image_reference=image_reference,
        camera_script=build_camera_script(num_chunks, camera_pattern),
        width=width,
        height=height,
        fps=fps,
        seed=seed,
        flow_shift=flow_shift,
        negative_prompt=negative_prompt,
    )


def load_workload(
    path: str | Path,
    *,
    image_resolver: Callable[[str], str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Workload:
    """A rollout from a JSON file.

    Args:
        path: a file that holds one JSON object; docs/realtime.md lists its keys.
        image_resolver: turns the file's ``image`` into an ``http(s)`` or ``data:`` URL. Reading a picture is I/O, so it
            is the caller's.
        overrides: keys that replace the file's. None means "not given"; 0 and empty text are given.

    Raises:
        ValueError: not JSON, not an object, a value of the wrong kind, or what :class:`Workload` refuses.
        KeyError: a prompt update without ``after_chunk`` or ``prompt``.
        OSError: the file cannot be read.
    """
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(document, dict):
        raise ValueError(f"The workload file holds {type(document).__name__}; it must be one JSON object.")
    return workload_from(document, image_resolver=image_resolver, overrides=overrides)


def workload_from(
    document: Mapping[str, Any],
    *,
    image_resolver: Callable[[str], str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Workload:
    """As :func:`load_workload`, of an object that was read already."""
    merged = {**document, **{key: value for key, value in (overrides or {}).items() if value is not None}}

    image = merged.get("image") or merged.get("image_reference")
    camera_script = _camera_script(merged)
    if image is None:
        raise ValueError("The workload file names no picture; add image or image_reference.")
    extra_params = merged.get("extra_params") or {}
    if not isinstance(extra_params, Mapping):
        raise ValueError(f"extra_params is {type(extra_params).__name__}; it must be a JSON object.")
    return Workload(
        prompt=_text("prompt", merged.get("prompt", DEFAULT_PROMPT)),
        image_reference=str(image) if image_resolver is None else image_resolver(str(image)),
        camera_script=camera_script,
        width=_integer("width", merged.get("width", DEFAULT_WIDTH)),
        height=_integer("height", merged.get("height", DEFAULT_HEIGHT)),
        fps=_number("fps", merged.get("fps", DEFAULT_FPS)),
        seed=_integer("seed", merged.get("seed", DEFAULT_SEED)),
        flow_shift=_number("flow_shift", merged.get("flow_shift", DEFAULT_FLOW_SHIFT)),
        negative_prompt=merged.get("negative_prompt"),
        prompt_updates=_prompt_updates(merged.get("prompt_updates") or ()),
        extra_params=dict(extra_params),
    )


def _camera_script(merged: Mapping[str, Any]) -> list[list[list[str]]]:
    """The file's own script (unchecked), or one of its count and pattern; a script that is given wins over a count."""
    script: Any = merged.get("camera_action_script")
    if script is not None:
        return script  # type: ignore[no-any-return]  # Workload checks it
    num_chunks = merged.get("num_chunks")
    if num_chunks is None:
        raise ValueError("The workload file has no length; add num_chunks or camera_action_script.")
    return build_camera_script(_integer("num_chunks", num_chunks), str(merged.get("camera_pattern", "forward")))


def _prompt_updates(entries: Any) -> tuple[PromptUpdate, ...]:
    if not isinstance(entries, (list, tuple)):
        raise ValueError(f"prompt_updates is {type(entries).__name__}; it must be a list of JSON objects.")
    updates = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise ValueError(f"prompt_updates[{index}] is {type(entry).__name__}; it must be a JSON object.")
        updates.append(
            PromptUpdate(
                after_chunk=_integer("after_chunk", entry["after_chunk"]),
                prompt=_text(f"prompt_updates[{index}].prompt", entry["prompt"]),
                transition_chunks=_integer(
                    "transition_chunks", entry.get("transition_chunks", DEFAULT_TRANSITION_CHUNKS)
                ),
            )
        )
    return tuple(updates)


def _text(name: str, value: Any) -> str:
    if value is None:
        raise ValueError(f"{name} is null; leave the key out for the default, or write a text.")
    return str(value)


def _integer(name: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} is {value!r}; it must be a whole number.") from error


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} is {value!r}; it must be a number.") from error


def _whole_as_int(value: float) -> float:
    """``16.0`` as ``16``: what servers and earlier reports write."""
    return int(value) if float(value).is_integer() else value
