"""wire.realtime.rollout: chunks, frames, and scripts that are none."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.wire.realtime.rollout import (
    SATURATION_CHUNKS,
    check_camera_script,
    chunks_for_num_frames,
    num_frames_for_chunks,
    pixel_frames_in_chunk,
)


def test_the_attention_window_is_full_after_six_chunks() -> None:
    """(9 + 9) latent frames at 3 a chunk."""
    assert SATURATION_CHUNKS == 6


def test_what_does_not_fill_a_chunk_is_not_generated() -> None:
    """The server's floor division: 1 to 8 frames give no chunk, 9 to 20 one."""
    asked = [1, 8, 9, 10, 20, 21, 32, 33, 81, 189]
    assert [chunks_for_num_frames(count) for count in asked] == [0, 0, 1, 1, 1, 2, 2, 3, 7, 16]


def test_the_first_chunk_is_three_frames_short() -> None:
    """9, then 12 each; together what the request asks for."""
    frames = [pixel_frames_in_chunk(index) for index in range(4)]
    assert frames == [9, 12, 12, 12]
    assert sum(frames) == num_frames_for_chunks(4)


@pytest.mark.parametrize("function", [num_frames_for_chunks, chunks_for_num_frames])
def test_nothing_cannot_be_asked_for(function: Any) -> None:
    """Zero and less are errors that hold the value."""
    for value in (0, -3):
        with pytest.raises(ValueError, match=str(value)):
            function(value)


def test_no_chunk_comes_before_the_first() -> None:
    """A negative index is an error that holds it."""
    with pytest.raises(ValueError, match="-1"):
        pixel_frames_in_chunk(-1)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ([], "empty"),
        (None, "NoneType"),
        ("www", r"camera_action_script is str"),
        ({"0": []}, "dict"),
        (["www"], r"\[0\] is str"),
        ([[["w"]] * 3, None], r"\[1\] is NoneType"),
        ([[["w"], ["w"]]], r"\[0\] has 2 action lists"),
        ([[["w"], "w", ["w"]]], r"\[0\]\[1\] is str"),
        ([[["w"], [], [5]]], r"\[0\]\[2\] holds 5"),
        ([[["w"], [], [None]]], r"\[0\]\[2\] holds None"),
    ],
)
def test_a_malformed_script_is_refused_where_it_is_wrong(script: Any, says: str) -> None:
    """The message names the chunk, the list in it and what stands there."""
    with pytest.raises(ValueError, match=says):
        check_camera_script(script)


def test_a_script_comes_back_as_plain_lists_of_its_own() -> None:
    """Tuples become lists, key names stay as they are, and the caller's lists are not shared."""
    given = ((("W", "zz"), (), ("d",)),)
    assert check_camera_script(given) == [[["W", "zz"], [], ["d"]]]
    mine = [[["w"], [], []]]
    check_camera_script(mine)[0][0].append("a")
    assert mine == [[["w"], [], []]]
