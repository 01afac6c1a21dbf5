"""``session.start`` as the server reads it: what is checked before ``video.start``, and what it comes to.

Much more is wrong with a request than is found here. Picture, geometry, frame count and camera script are looked at
after ``video.start`` went out, by whoever generates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vision_bench.wire.realtime.fields import START_DEFAULTS, START_FIELDS, read_object
from vision_bench.wire.realtime.rollout import chunks_for_num_frames
from vision_bench.wire.shapes import Json, parse_json

MAX_START_CHARACTERS = 4 * 1024 * 1024
FORMAT = "m4s"
MUXER_FPS = 24.0
"""Written into the file when the request names no rate."""


MAX_FRAMES = 2**31 - 1
"""What ``seconds`` times a rate near the end of the range comes to, so that it stays a number."""


class StartRefused(ValueError):
    """The session ends before it began; the text is what the client is told."""


@dataclass(frozen=True, slots=True)
class Start:
    """A request that was accepted as far as its form goes."""

    config: Json
    """The request as read: nulls dropped, defaults filled in. ``video.start`` echoes it, picture and all."""

    @property
    def prompt(self) -> str:
        """May be blank: that is found later."""
        return str(self.config["prompt"])

    @property
    def extra_params(self) -> Json:
        """What goes to the model as it is."""
        extra: Json = self.config.get("extra_params", {})
        return extra

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height; None unless both are known. ``size`` wins over the fields, they over ``video_params``."""
        if "size" in self.config:
            width, _, height = self.config["size"].partition("x")
            return int(width), int(height)
        width, height = self._video("width"), self._video("height")
        return None if width is None or height is None else (width, height)

    @property
    def fps(self) -> float:
        """The rate for the file."""
        found = self._video("fps")
        return MUXER_FPS if found is None else float(found)

    @property
    def num_frames(self) -> int | None:
        """Pictures asked for, by count or by ``seconds``; None when neither is there."""
        found = self._video("num_frames")
        if found is None and "seconds" in self.config:
            return int(min(int(self.config["seconds"]) * self.fps, MAX_FRAMES))
        return None if found is None else int(found)

    @property
    def num_chunks(self) -> int:
        """Chunks that will be generated; 0 when the pictures asked for do not fill one."""
        return chunks_for_num_frames(max(1, self.num_frames or 1))

    def _video(self, name: str) -> Any:
        found = self.config.get(name)
        return self.config.get("video_params", {}).get(name) if found is None else found


def read_start(message: str, *, model: str) -> Start:
    """The request in a session's first text message.

    Args:
        message: the text frame.
        model: the first name that the server serves; a request may name this one or none.

    Raises:
        StartRefused: too long, not JSON, not an object, another type or format, a field that is missing, of another
            kind or out of range, or another model.
    """
    if len(message) > MAX_START_CHARACTERS:
        raise StartRefused("session.start message too large")
    try:
        given = parse_json(message)
    except ValueError:
        raise StartRefused("Invalid JSON in session.start") from None
    if not isinstance(given, dict):
        raise StartRefused("session.start must be a JSON object")
    if given.get("type") != "session.start":
        raise StartRefused(f"Expected session.start, got: {given.get('type')}")
    if given.get("format", FORMAT) != FORMAT:
        raise StartRefused(f"Invalid session.start format: expected '{FORMAT}'.")
    try:
        config = read_object(_with_promoted(given), START_FIELDS)
    except ValueError as problem:
        raise StartRefused(f"Invalid session.start: {problem}") from problem
    if "prompt" not in config:
        raise StartRefused("Invalid session.start: prompt: Field required")
    if config.get("model", model) != model:
        raise StartRefused(f"Model mismatch: request specifies '{config['model']}' but server is running '{model}'.")
    return Start({**START_DEFAULTS, **config})


def _with_promoted(given: Json) -> Json:
    """``sampling_params`` spread out: known fields that the top level lacks go up, all else into ``extra_params``."""
    merged = {name: value for name, value in given.items() if name not in {"type", "format", "sampling_params"}}
    sampling = given.get("sampling_params")
    if not isinstance(sampling, dict):
        return merged
    promoted = {name: value for name, value in sampling.items() if name in START_FIELDS and name not in merged}
    others = {name: value for name, value in sampling.items() if name not in promoted}
    extra = merged.get("extra_params")
    if others and isinstance(extra, dict | None):
        promoted["extra_params"] = {**(extra or {}), **others}
    return {**merged, **promoted}
