"""The envelopes of a study: every combination of what was asked for, each as changes to the workload."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vision_bench.bench.choice import AXES
from vision_bench.errors import InvalidRequest

Json = dict[str, Any]

_EXCLUDES = {"fps": "num_frames", "num_frames": "fps"}
MOST_POINTS = 200


@dataclass(frozen=True, slots=True)
class Point:
    """One envelope.

    Attributes:
        changes: workload keys and their values here; None takes a key out.
        control: of a point that is asked again with a black picture, or without sound.
    """

    changes: tuple[tuple[str, Any], ...]
    control: str | None = None

    @property
    def all_changes(self) -> Json:
        """With the control."""
        return dict(self.changes) | ({"control": self.control} if self.control else {})

    @property
    def slug(self) -> str:
        """A folder's name."""
        parts = [f"{key}-{_plain(value)}" for key, value in self.all_changes.items() if value is not None]
        return re.sub(r"[^A-Za-z0-9._-]+", "_", "_".join(parts))[:150] or "as-it-is"


def _plain(value: Any) -> str:
    return (
        ("on" if value else "off")
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def make_points(axes: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Every combination, in the order in which the axes and their values are given.

    Args:
        axes: workload keys (``AXES`` and ``model``) to the values that were asked for.

    Raises:
        InvalidRequest: nothing to compare, fps together with num_frames, a value twice, or too many combinations.
    """
    given = {key: list(values) for key, values in axes.items() if values}
    if not given:
        raise InvalidRequest("nothing to compare; give --fps 0.5,1,2, --height 120,240,360, --audio on,off or another")
    if "fps" in given and "num_frames" in given:
        raise InvalidRequest("--fps and --num-frames exclude each other; make two studies")
    for key, values in given.items():
        if len(set(values)) < len(values):
            raise InvalidRequest(f"--{key.replace('_', '-')} names a value twice")
    points = []
    for combination in itertools.product(*given.values()):
        changes: Json = dict(zip(given, combination, strict=True))
        for key in list(changes):
            if key in _EXCLUDES:
                changes[_EXCLUDES[key]] = None
        points.append(Point(tuple(changes.items())))
    if len(points) > MOST_POINTS:
        raise InvalidRequest(f"{len(points)} envelopes are more than {MOST_POINTS}; give fewer values")
    if len({point.slug for point in points}) < len(points):
        raise InvalidRequest("two models cannot be told apart by their names' letters and digits; study them apart")
    return points


def envelope_of(values: Mapping[str, Any]) -> Json:
    """The envelope that a workload's values say; keys that say nothing are left out."""
    return {key: values[key] for key in AXES if values.get(key) not in (None, False)}


def in_words(values: Mapping[str, Any]) -> str:
    """An envelope for a reader: ``240 lines, 2 fps, with sound``."""
    form = {
        "height": "{} lines",
        "fps": "{:g} fps",
        "num_frames": "{} frames",
        "seconds": "first {:g} s",
        "max_pixels": "{} pixels at most",
    }
    words = [text.format(values[key]) for key, text in form.items() if values.get(key) is not None]
    return ", ".join([*words, "with sound" if values.get("use_audio") else "without sound"])
