"""Tubelets that come again are copied, others are computed, and the bits are those of the whole clip."""

from __future__ import annotations

import numpy as np
import pytest
from tests.preprocess_cases import noise, same_bits, small_video

from vision_bench.errors import InvalidRequest
from vision_bench.preprocess import reference
from vision_bench.preprocess.fast import VideoPreprocessor
from vision_bench.preprocess.geometry import Size
from vision_bench.preprocess.reference import Frames
from vision_bench.preprocess.spec import VideoSpec
from vision_bench.preprocess.tubelets import TubeletCache

SPEC = small_video()
PREPROCESS = VideoPreprocessor(SPEC, compiled=False)


def through(cache: TubeletCache, frames: Frames, spec: VideoSpec = SPEC) -> np.ndarray:
    """The patches that a cache writes."""
    preprocess = PREPROCESS if spec is SPEC else VideoPreprocessor(spec, compiled=False)
    size = Size(*frames.shape[1:3])
    out = np.full((spec.grid(len(frames), size).patches, spec.patch_values), np.nan, np.float32)
    cache.fill(preprocess, frames, spec.target(len(frames), size), out)
    return out


def whole(frames: Frames, spec: VideoSpec = SPEC) -> np.ndarray:
    """The oracle's patches of a clip."""
    return reference.video(frames, spec).pixel_values


def test_a_window_that_moves_by_a_tubelet_is_computed_at_its_end_alone() -> None:
    """8 frames twice, moved by 2: 3 of 4 tubelets are copied, and all bits are those of the clip as a whole."""
    cache, stream = TubeletCache(1 << 30), noise(1, 10, 70, 101)
    assert same_bits(through(cache, stream[:8]), whole(stream[:8]))
    assert (cache.hits, cache.misses) == (0, 4)
    assert same_bits(through(cache, stream[2:]), whole(stream[2:]))
    assert (cache.hits, cache.misses) == (3, 5)
    assert cache.hit_rate == 3 / 8


def test_a_window_that_moves_by_one_frame_shares_nothing() -> None:
    """Pairs are cut from the first frame on: what is asked for must begin on the grid."""
    cache, stream = TubeletCache(1 << 30), noise(1, 9, 70, 101)
    through(cache, stream[:8])
    assert same_bits(through(cache, stream[1:]), whole(stream[1:]))
    assert cache.hits == 0


def test_holes_in_the_middle_are_filled_and_an_odd_frame_out_is_its_own() -> None:
    """Known, unknown, unknown, known, and one frame alone, which is not the pair that begins with it."""
    cache, old, new = TubeletCache(1 << 30), noise(1, 9, 70, 101), noise(2, 9, 70, 101)
    through(cache, np.concatenate([old, old[8:] + 1]))
    mixed = np.concatenate([old[:2], new[2:6], old[6:]])
    assert same_bits(through(cache, mixed), whole(mixed))
    assert cache.hits == 2


def test_one_pixel_is_enough_to_be_another_tubelet() -> None:
    """Also one that no sampled row holds; afterwards the newer one is kept."""
    cache, frames = TubeletCache(1 << 30), noise(1, 2, 70, 101)
    through(cache, frames)
    other = frames.copy()
    other[1, 3, 50, 1] ^= 1
    assert same_bits(through(cache, other), whole(other))
    assert cache.hits == 0
    assert same_bits(through(cache, other), whole(other))
    assert cache.hits == 1


def test_other_sizes_and_settings_are_other_patches() -> None:
    """The same pixels, given another size by a longer clip, or normalised otherwise."""
    cache, frames = TubeletCache(1 << 30), noise(1, 2, 200, 300)
    longer = np.concatenate([frames] * 4)
    assert SPEC.target(2, Size(200, 300)) != SPEC.target(8, Size(200, 300))
    through(cache, frames)
    assert same_bits(through(cache, longer), whole(longer))
    other = small_video(image_mean=[0.4, 0.5, 0.6])
    assert same_bits(through(cache, frames, other), whole(frames, other))


def test_frames_may_lie_anywhere() -> None:
    """A crop of every other frame is found again as the same pixels packed."""
    cache, stream = TubeletCache(1 << 30), noise(1, 8, 90, 120)
    view = stream[::2, 10:80, 15:116]
    assert same_bits(through(cache, view), whole(np.ascontiguousarray(view)))
    through(cache, np.ascontiguousarray(view))
    through(cache, view)
    assert cache.hits == 4


def test_what_is_kept_stays_within_its_bound_and_the_least_used_leaves() -> None:
    """Room for two tubelets: the first is still there after it was used, the second is not."""
    clips = [noise(seed, 2, 64, 64) for seed in range(3)]
    size_bytes = clips[0].nbytes + whole(clips[0]).nbytes
    cache = TubeletCache(2 * size_bytes)
    for clip in (clips[0], clips[1], clips[0], clips[2]):
        through(cache, clip)
        assert cache.used_bytes <= cache.max_bytes
    assert cache.hits == 1
    assert same_bits(through(cache, clips[0]), whole(clips[0]))
    assert cache.hits == 2
    through(cache, clips[1])
    assert cache.hits == 2


def test_a_tubelet_that_is_larger_than_the_cache_is_computed() -> None:
    """And throws nothing out."""
    cache, frames = TubeletCache(1000), noise(1, 2, 70, 101)
    for _ in range(2):
        assert same_bits(through(cache, frames), whole(frames))
    assert (cache.hits, cache.used_bytes) == (0, 0)


def test_callers_do_not_share_memory_with_the_cache() -> None:
    """A result that is written to, and frames that are, change nothing that is kept."""
    cache, frames = TubeletCache(1 << 30), noise(1, 2, 70, 101)
    expected = whole(frames)
    first = through(cache, frames)
    first[:] = 0
    again = frames.copy()
    frames[:] = 0
    assert same_bits(through(cache, again), expected)
    assert cache.hits == 1


def test_what_it_came_to_in_one_line() -> None:
    """Nothing yet is n/a, not 0 %."""
    cache = TubeletCache(2_000_000)
    assert cache.hit_rate is None
    assert cache.text == "n/a of 0 tubelets were there, 0 of 2 MB used"
    through(cache, noise(1, 2, 70, 101))
    through(cache, noise(1, 2, 70, 101))
    assert cache.text.startswith("50.0% of 2 tubelets were there, ")


def test_a_size_that_is_imposed_is_whole_tokens() -> None:
    """What the compiled loops would write past is refused."""
    for target in (Size(64, 33), Size(0, 64), Size(-32, 64), Size(16, 64)):
        with pytest.raises(InvalidRequest, match="no whole number of tokens"):
            PREPROCESS(noise(1, 2, 64, 64), target=target)
    found = PREPROCESS(noise(1, 1, 70, 100), target=Size(64, 96))
    assert found.grid_thw.tolist() == [1, 4, 6]
