"""Laws of the broadcast: stamps, windows, seeds, wordings."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.media.broadcast.rig import hummed

from vision_bench.media.broadcast.genres import GENRES
from vision_bench.media.broadcast.labels import label_programme
from vision_bench.media.broadcast.stamp import FRAME_BITS, Stamp, draw_stamp, read_stamp
from vision_bench.media.broadcast.wording import says

stamps = st.builds(Stamp, st.integers(0, 7), st.integers(0, 2**FRAME_BITS - 1))


@given(stamps, st.sampled_from([360, 480, 1080]), st.floats(0, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_a_stamp_reads_back_through_noise(stamp: Stamp, height: int, noise: float, seed: int) -> None:
    """Whatever was written is read, also under noise of up to 40 luma steps deviation."""
    luma = np.full((height, 720), 90, np.uint8)
    draw_stamp(luma, stamp, lit=False)
    noisy = luma + np.random.default_rng(seed).normal(0, noise, luma.shape)
    assert read_stamp(np.clip(noisy, 0, 255).astype(np.uint8)) == stamp


@given(
    st.sampled_from(["baseball", "drama", "esports"]),
    st.floats(6, 60, allow_nan=False),
    st.floats(0, 700, allow_nan=False),
    st.integers(-5, 10**12),
)
@settings(max_examples=25, deadline=None)
def test_same_seed_same_labels_and_windows_tile(genre: str, seconds: float, lead: float, seed: int) -> None:
    """Planning twice gives one label file; its windows follow each other without a gap, as many as whole ones fit."""
    labels = label_programme(hummed(genre, seconds=seconds, lead=lead, seed=seed))
    assert labels == label_programme(hummed(genre, seconds=seconds, lead=lead, seed=seed))
    windows = labels["windows"]
    assert windows
    assert windows[0]["first_frame"] == labels["lead_frames"]
    for earlier, later in pairwise(windows):
        assert earlier["first_frame"] + earlier["frames"] == later["first_frame"]
    end = windows[-1]["first_frame"] + windows[-1]["frames"]
    assert end <= labels["frames"] < end + 6 * GENRES[genre].fps + 1


@given(st.text(alphabet="가나다 a1-2이십.", min_size=1, max_size=12))
def test_every_text_says_itself(text: str) -> None:
    """Whatever is written is said by its own text, unless it is blank."""
    assert says(text, text) is bool(text.strip())


@given(st.integers(0, 9999), st.integers(0, 9999))
def test_a_number_is_said_by_itself_alone(shown: int, asked: int) -> None:
    """A text with one number says that number and no other."""
    assert says(f"about {shown} of them", str(asked)) is (shown == asked)
