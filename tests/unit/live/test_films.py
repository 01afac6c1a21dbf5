"""The times of a film that stands in for a camera."""

from __future__ import annotations

import io
from typing import Any

import av
import numpy as np
import pytest

from vision_bench.live.failures import StreamFailure
from vision_bench.live.films import STILL_SECONDS, Rounds, bound_pixels
from vision_bench.media.probe import decode_past_damage


def shown(rounds: Rounds, *seconds: float) -> list[float]:
    """The times of one round's pictures."""
    times = [rounds.at(each) for each in seconds]
    rounds.end()
    return times


def test_the_last_picture_of_a_round_is_shown_as_long_as_the_others() -> None:
    """Two pictures a tenth apart come ten a second for ever; so do those of a film whose pace changes at its end."""
    rounds = Rounds(began=5.0)
    times = [each for _ in range(3) for each in shown(rounds, 0.0, 0.1)]
    assert [round(each, 6) for each in times] == [5.0, 5.1, 5.2, 5.3, 5.4, 5.5]
    assert shown(rounds, 0.0, 0.1, 0.5)[0] == rounds.began - 0.9


def test_a_film_of_one_picture_comes_once_a_second() -> None:
    """It would come as fast as it can be opened."""
    rounds = Rounds()
    assert [shown(rounds, 0.0) for _ in range(3)] == [[0.0], [STILL_SECONDS], [2 * STILL_SECONDS]]


def test_a_round_without_a_picture_takes_no_time() -> None:
    """And two pictures of one time do not make a pace of their own."""
    rounds = Rounds()
    rounds.end()
    assert rounds.began == 0.0
    shown(rounds, 0.0, 0.0)
    assert rounds.began == STILL_SECONDS


def h264(width: int, height: int, *, count: int) -> bytes:
    """Grey pictures as bare H.264."""
    out = io.BytesIO()
    with av.open(out, "w", format="h264") as container:
        track: Any = container.add_stream("libx264", rate=10)
        track.width, track.height, track.pix_fmt = width, height, "yuv420p"
        for _ in range(count):
            picture = np.full((height, width, 3), 90, np.uint8)
            container.mux(track.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(track.encode(None))
    return out.getvalue()


def test_pictures_that_become_huge_are_not_decoded() -> None:
    """A source whose parameters are within the bound may send larger pictures later: none of them comes out, the small
    ones before and behind do."""
    small, huge = h264(64, 48, count=5), h264(320, 240, count=5)
    with av.open(io.BytesIO(small + huge + small), format="h264") as container:
        stream = container.streams.video[0]
        bound_pixels(stream, max_pixels=64 * 48)
        sizes = [(picture.width, picture.height) for picture in decode_past_damage(container, stream)]
    assert set(sizes) == {(64, 48)}
    assert len(sizes) > 5


def test_a_source_whose_parameters_are_huge_is_refused() -> None:
    """Both sizes are told."""
    with av.open(io.BytesIO(h264(320, 240, count=2)), format="h264") as container:
        with pytest.raises(StreamFailure, match="320x240, 76799 pixels"):
            bound_pixels(container.streams.video[0], max_pixels=320 * 240 - 1)
        bound_pixels(container.streams.video[0], max_pixels=320 * 240)
