"""Laws of the reference server's pictures: marks come back, and no camera command is beyond the world."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vision_bench.engine.realtime.picture import Planes
from vision_bench.engine.realtime.pose import ORIGIN, between, moved
from vision_bench.engine.realtime.world import World
from vision_bench.media.marks import draw_marks, has_room, read_marks
from vision_bench.wire.realtime.camera import read_camera
from vision_bench.wire.realtime.marks import EVENTS, Marks, from_bits, to_bits

digests = st.integers(1, 2**32 - 1)
marks = st.builds(
    Marks,
    st.integers(0, 2**24 - 1),
    st.integers(0, 2**16 - 1),
    st.lists(digests, max_size=EVENTS).map(tuple),
)
finite = st.floats(allow_nan=False, allow_infinity=False)
lengths = finite | st.floats(-0.1, 0.1)
quaternions = st.tuples(finite, finite, finite, finite).filter(any)
commands = st.builds(
    lambda mode, way, turn: read_camera({"mode": mode, "data": {"translation": list(way), "rotation": list(turn)}}),
    st.sampled_from(["target", "velocity"]),
    st.tuples(lengths, lengths, lengths),
    quaternions,
)


@given(marks)
def test_marks_come_back_from_bits(given_marks: Marks) -> None:
    """Every number and every digest that has a place."""
    assert from_bits(to_bits(given_marks)) == given_marks


@given(marks, st.integers(1, 60), st.integers(1, 40))
@settings(max_examples=50)
def test_marks_come_back_from_pixels_of_any_size_with_room(given_marks: Marks, columns: int, rows: int) -> None:
    """Sides are multiples of 16; without room nothing is read."""
    luma = np.full((16 * rows, 16 * columns), 90, np.uint8)
    if has_room(luma.shape[1], luma.shape[0]):
        draw_marks(luma, given_marks)
        assert read_marks(luma) == given_marks
    else:
        assert read_marks(luma) is None


@given(st.lists(commands, min_size=1, max_size=6))
@settings(max_examples=60)
def test_every_way_of_the_camera_has_pictures(way: list[object]) -> None:
    """Any finite numbers, as steps or as places to go to: each picture has the size and the colours of the first."""
    luma = np.arange(16 * 32, dtype=np.int64).reshape(16, 32).astype(np.uint8)
    colour = np.full((8, 16), 128, np.uint8)
    world, pose = World(Planes(luma, colour, colour)), ORIGIN
    for command in way:
        pose = moved(pose, command)  # type: ignore[arg-type]
        for place in (pose, between(ORIGIN, pose, 0.5)):
            world.move(place)
            seen = world.picture()
            assert (seen.luma.shape, seen.blue.shape, seen.red.shape) == ((16, 32), (8, 16), (8, 16))
            assert set(np.unique(seen.blue)) <= {127, 128}
