"""What is wrong with a request that passed its first look: found once the session has begun, and the end of it.

The rules are those of a LingBot deployment: one geometry, whole chunks, four steps, a script that fits. Whether the
picture can be opened is found by whoever opens it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vision_bench.wire.realtime.camera import command_for_keys
from vision_bench.wire.realtime.rollout import check_camera_script, num_frames_for_chunks
from vision_bench.wire.realtime.start import Start

STEPS = 4
SIDE_MULTIPLE = 16
MAX_AREA = 480 * 832


@dataclass(frozen=True, slots=True)
class Deployment:
    """The geometry that the model was loaded for."""

    width: int = 832
    height: int = 480


def late_error(start: Start, deployment: Deployment) -> str | None:
    """What the client is told, or None when nothing is wrong. The first that is wrong counts."""
    rules: tuple[Callable[[], str | None], ...] = (
        lambda: _image_error(start.config.get("image_reference")),
        lambda: None if start.prompt.strip() else "prompt must contain non-whitespace text",
        lambda: _geometry_error(start.size, deployment),
        lambda: _frames_error(start),
        lambda: _steps_error(start.config.get("num_inference_steps")),
        lambda: _flow_shift_error(start),
        lambda: _extra_error(start),
    )
    return next((error for rule in rules if (error := rule()) is not None), None)


def _image_error(reference: Any) -> str | None:
    if reference is None:
        return "an image_reference is required: the rollout starts from a picture"
    if isinstance(reference, list):
        return f"exactly one image_reference is supported, got {len(reference)}"
    if "file_id" in reference:
        return "400: image_reference.file_id is not supported; send image_url"
    if not reference["image_url"].lower().startswith(("data:image", "http://", "https://")):
        return "400: image_reference.image_url must be a data:image or an http(s) URL"
    return None


def _geometry_error(size: tuple[int, int] | None, deployment: Deployment) -> str | None:
    served = f"{deployment.width}x{deployment.height}"
    if size is None:
        # The original works a size out from the picture's sides, which is hardly ever the one that it serves.
        return f"width and height are missing; this deployment serves {served}"
    width, height = size
    if width % SIDE_MULTIPLE or height % SIDE_MULTIPLE:
        return f"width and height must be multiples of {SIDE_MULTIPLE}, got {width}x{height}"
    if width * height > MAX_AREA:
        return f"width x height must be at most {MAX_AREA} pixels, got {width}x{height}"
    if size != (deployment.width, deployment.height):
        return f"this deployment serves {served}, got {width}x{height}"
    return None


def _frames_error(start: Start) -> str | None:
    asked, chunks = start.num_frames, start.num_chunks
    if asked is None or chunks < 1 or asked != num_frames_for_chunks(chunks):
        return f"num_frames must be 9 + 12 k, got {asked}"
    return None


def _steps_error(steps: int | None) -> str | None:
    return None if steps in (None, STEPS) else f"num_inference_steps must be {STEPS}, got {steps}"


def _flow_shift_error(start: Start) -> str | None:
    shift = start.extra_params.get("flow_shift", start.config.get("flow_shift"))
    if shift is None:
        return None
    is_number = isinstance(shift, int | float) and not isinstance(shift, bool)
    if not is_number or not (shift > 0 and math.isfinite(shift)):
        return f"flow_shift must be positive and finite, got {shift!r}"
    return None


def _extra_error(start: Start) -> str | None:
    extra = start.extra_params
    script = extra.get("camera_action_script")
    if extra.get("preencode_mp4"):
        return "preencode_mp4 is not supported for streaming"
    if extra.get("action_path") is not None:
        if script is not None:
            return "camera_action_script and action_path exclude each other"
        return "action_path needs a trusted root, which this deployment has not"
    return None if script is None else _script_error(script, start.num_chunks)


def _script_error(script: Any, num_chunks: int) -> str | None:
    try:
        chunks = check_camera_script(script)
        if len(chunks) != num_chunks:
            return f"camera_action_script has {len(chunks)} chunks, the request generates {num_chunks}"
        for chunk in chunks:
            for keys in chunk:
                command_for_keys(keys)
    except ValueError as problem:
        return str(problem)
    return None
