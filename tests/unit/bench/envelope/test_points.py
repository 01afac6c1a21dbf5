"""Every combination that was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.bench.envelope.points import Point, envelope_of, in_words, make_points
from vision_bench.errors import InvalidRequest


def test_every_combination_once() -> None:
    """In the order of the axes, with a folder's name for each; fps takes num_frames out."""
    points = make_points({"height": [120, 240], "fps": [0.5, 2.0], "use_audio": [True], "model": []})
    assert [point.slug for point in points] == [
        f"height-{height}_fps-{fps}_use_audio-on" for height in (120, 240) for fps in ("0.5", "2")
    ]
    assert points[0].all_changes == {"height": 120, "fps": 0.5, "num_frames": None, "use_audio": True}
    assert Point(points[0].changes, "muted").all_changes["control"] == "muted"


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"fps": []}, "nothing to compare"),
        ({"fps": [1.0], "num_frames": [4]}, "exclude each other"),
        ({"fps": [1.0, 1.0]}, "--fps names a value twice"),
        ({"height": list(range(100, 400)), "fps": [1.0]}, "300 envelopes"),
        ({"model": ["a/b", "a:b"]}, "cannot be told apart"),
    ],
)
def test_what_makes_no_study_is_refused(axes: dict[str, list[Any]], words: str) -> None:
    """Before anything is sent."""
    with pytest.raises(InvalidRequest, match=words):
        make_points(axes)


def test_an_envelope_in_words() -> None:
    """What is not said is left out."""
    values = {"height": 240, "fps": 2.0, "use_audio": True, "num_frames": None, "prompt": "x", "max_pixels": None}
    assert in_words(values) == "240 lines, 2 fps, with sound"
    assert envelope_of(values) == {"height": 240, "fps": 2.0, "use_audio": True}
    assert in_words(envelope_of({"seconds": 3.0, "use_audio": False})) == "first 3 s, without sound"
