"""What the reference server's pictures show, after they were encoded, sent, joined and decoded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tests.integration.realtime_rig import HEIGHT, decoded, fast, play, realtime_engine, start_message

from vision_bench.media.marks import read_marks, strip_rows

KEYS = ("", "w", "d", "l")


async def pictures(key: str) -> list[NDArray[np.int32]]:
    """Three chunks under one held key: what is seen under the marks' strip."""
    script = [[[key] if key else []] * 3] * 3
    async with realtime_engine() as rig, rig.connect() as socket:
        seen = await play(socket, start_message(chunks=3, script=script))
    found = decoded(seen.media)
    assert all(read_marks(picture) is not None for picture in found)
    return [picture[strip_rows(picture.shape[1]) :].astype(np.int32) for picture in found]


def shift(before: NDArray[np.int32], now: NDArray[np.int32], columns: slice) -> int:
    """Pixels by which those columns have moved to the right: the shift that fits best."""

    def misfit(pixels: int) -> float:
        return float(abs(np.roll(now, -pixels, axis=1)[:, columns] - before[:, columns]).mean())

    return min(range(-40, 41), key=misfit)


async def test_pictures_move_as_the_camera_does() -> None:
    """Hold: the picture stays. Ahead: its halves part. A step to the right: it moves left. A turn: further left."""
    films = {key: await pictures(key) for key in KEYS}
    middle, left, right = slice(60, -60), slice(40, 100), slice(-100, -40)
    assert {len(film) for film in films.values()} == {33}
    assert all(film[0].shape[0] > HEIGHT // 2 for film in films.values())
    for key in KEYS[1:]:
        assert abs(films[key][0] - films[""][0]).mean() < 2  # each begins with the picture that was given
    assert max(abs(picture - films[""][0]).mean() for picture in films[""]) < 3
    ahead = films["w"]
    assert shift(ahead[0], ahead[16], left) < 0 < shift(ahead[0], ahead[16], right)
    step, turn = (shift(films[key][0], films[key][8], middle) for key in ("d", "l"))
    assert turn < step < 0


async def test_times_do_not_change_pictures() -> None:
    """The same request gives the same film, byte for byte, however the chunks are spread out in time."""
    media = []
    for settings in (fast(), fast(ttfc_ms=100, chunk_ms=50)):
        async with realtime_engine(settings) as rig, rig.connect() as socket:
            media.append(b"".join((await play(socket, start_message(chunks=2, script=[[["w"]] * 3] * 2))).media))
    assert media[0] == media[1]
