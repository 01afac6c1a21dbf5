"""What is trusted, what is done, and what is left to the stock processor."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest
from tests.preprocess_cases import noise, same_bits, small_image, small_video

from vision_bench.preprocess import reference
from vision_bench.preprocess.plugins.work import KEPT_SETTINGS, Work, grid_of, sample_for
from vision_bench.preprocess.reference import Frames, Patches
from vision_bench.preprocess.spec import ImageSpec, VideoSpec

LOG = logging.getLogger("tests.work")


class Oracle:
    """Stands in for the stock processor, and counts its calls; ``error`` is added to its first value."""

    def __init__(self, spec: VideoSpec | ImageSpec, error: float = 0.0) -> None:
        self.spec, self.error, self.calls = spec, error, 0

    def __call__(self, frames: Frames) -> Patches:
        self.calls += 1
        found = (
            reference.video(frames, self.spec)
            if isinstance(self.spec, VideoSpec)
            else reference.image(frames, self.spec)
        )
        found.pixel_values[0, 0] += np.float32(self.error)
        return found


def make_work() -> Work:
    return Work(LOG, compiled=False)


def test_several_clips_come_one_after_another_as_stock_puts_them() -> None:
    """Two sizes in one call: the oracle's bits of both, and a grid a clip."""
    spec = small_video()
    work, clips = make_work(), [noise(1, 5, 70, 101), noise(2, 2, 64, 64)]
    found = work.patches(spec, clips, Oracle(spec))
    expected = [reference.video(clip, spec) for clip in clips]
    assert found is not None
    assert same_bits(found.pixel_values, np.concatenate([one.pixel_values for one in expected]))
    assert found.grid_thw.tolist() == [one.grid_thw.tolist() for one in expected]
    assert found.grid_thw.dtype == np.int64
    assert work.counts == {"videos": 2}


def test_images_are_counted_apart() -> None:
    """(H, W, 3) each."""
    spec = small_image()
    work, pictures = make_work(), [noise(1, 70, 101), noise(2, 64, 64)]
    found = work.patches(spec, pictures, Oracle(spec))
    assert found is not None
    expected = [reference.image(picture, spec).pixel_values for picture in pictures]
    assert same_bits(found.pixel_values, np.concatenate(expected))
    assert work.counts == {"images": 2}


def test_stock_is_asked_once_a_kind_and_not_for_each_size_limit() -> None:
    """Limits change sizes, which have tests of their own; normalising and patches are what a sample shows."""
    work = make_work()
    first, second = small_video(), small_video(size={"shortest_edge": 1024, "longest_edge": 100_000})
    oracle = Oracle(first)
    for spec in (first, second, first):
        assert work.patches(spec, [noise(1, 2, 70, 90)], oracle) is not None
    assert oracle.calls == 1
    other = small_video(image_mean=[0.4, 0.5, 0.6])
    assert work.patches(other, [noise(1, 2, 70, 90)], Oracle(other)) is not None


def test_a_processor_that_gives_other_bytes_keeps_its_work(caplog: pytest.LogCaptureFixture) -> None:
    """One value off by a millionth is enough; the log says it once, with the first difference."""
    spec = small_video()
    work = make_work()
    with caplog.at_level(logging.INFO, LOG.name):
        for _ in range(3):
            assert work.patches(spec, [noise(1, 2, 70, 90)], Oracle(spec, 1e-6)) is None
    assert work.counts == {"left: not trusted": 3}
    (line,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "not left to vision-bench" in line.getMessage()
    assert "row 0, column 0" in line.getMessage()


def test_a_compiler_that_fails_fails_no_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Stock does the work, and the log has the compiler's words."""
    work = make_work()

    def fails(*settings: object) -> None:
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(work, "_make", fails)
    spec = small_video()
    assert work.patches(spec, [noise(1, 2, 70, 90)], Oracle(spec)) is None
    assert work.counts == {"left: not trusted": 1}
    assert "RuntimeError: no such instruction" in caplog.text


def test_a_processor_of_other_sizes_keeps_its_work() -> None:
    """Its patches cannot even be compared."""
    work = make_work()
    spec = small_video()
    assert work.patches(spec, [noise(1, 2, 70, 90)], Oracle(small_video(patch_size=14))) is None
    assert work.counts == {"left: not trusted": 1}


def test_input_that_we_refuse_is_left_for_stock_to_refuse() -> None:
    """A frame 400 times as long as wide raises nothing here."""
    spec = small_video()
    work = make_work()
    assert work.patches(spec, [noise(1, 2, 4, 1600)], Oracle(spec)) is None
    assert work.counts == {"left: refused": 1}


def test_what_a_caller_would_round_comes_rounded() -> None:
    """bfloat16 as its bits: half the memory, the numbers of the float32 rounded half to even; a kind of its own."""
    spec = small_video()
    work, oracle, clip = make_work(), Oracle(spec), noise(1, 3, 70, 90)
    plain = work.patches(spec, [clip], oracle)
    rounded = work.patches(spec, [clip], oracle, "bfloat16")
    assert plain is not None
    assert rounded is not None
    assert rounded.pixel_values.dtype == np.uint16
    assert np.array_equal(rounded.pixel_values, reference.to_bfloat16(plain.pixel_values))
    assert oracle.calls == 2
    assert work.patches(small_video(image_mean=[0.1] * 3), [clip], Oracle(spec), "bfloat16") is None


def test_rounding_is_of_one_thread_and_ends() -> None:
    """Other threads' callers have asked for nothing."""
    work, seen = make_work(), []
    with work.rounding():
        assert work.rounds
        thread = threading.Thread(target=lambda: seen.append(work.rounds))
        thread.start()
        thread.join()
    assert seen == [False]
    assert not work.rounds


def test_a_result_is_not_overwritten_by_the_next() -> None:
    """Memory returns to the pool only when nobody holds it."""
    spec = small_video()
    work = make_work()
    first = work.patches(spec, [noise(1, 2, 70, 90)], Oracle(spec))
    assert first is not None
    kept = first.pixel_values.copy()
    assert work.patches(spec, [noise(2, 2, 70, 90)], Oracle(spec)) is not None
    assert same_bits(first.pixel_values, kept)


def test_settings_that_requests_choose_do_not_pile_up() -> None:
    """More sets of settings than are kept: each still gives its own bits, also the forgotten first."""
    work = make_work()
    specs = [
        small_video(size={"shortest_edge": 1024, "longest_edge": 20_000 + 1000 * n}) for n in range(KEPT_SETTINGS + 2)
    ]
    clip = noise(3, 2, 90, 120)
    for spec in (*specs, specs[0]):
        found = work.patches(spec, [clip], Oracle(spec))
        assert found is not None
        assert found.grid_thw[0].tolist() == list(grid_of(spec, clip))
    assert len(work._made) == KEPT_SETTINGS


def test_threads_that_come_at_once_all_get_their_bits() -> None:
    """The first makes the preprocessor, the others wait for it."""
    spec = small_video()
    work, oracle, found = make_work(), Oracle(spec), {}

    def call(seed: int) -> None:
        found[seed] = work.patches(spec, [noise(seed, 2, 70, 90)], oracle)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, patches in found.items():
        assert same_bits(patches.pixel_values, reference.video(noise(seed, 2, 70, 90), spec).pixel_values)
    assert oracle.calls == 1


def test_the_sample_is_what_its_kind_takes_and_reaches_both_ends() -> None:
    """A clip or an image, with 0 and 255 side by side."""
    assert sample_for(small_video()).ndim == 4
    assert sample_for(small_image()).ndim == 3
    assert {0, 255} <= set(sample_for(small_image())[:, ::2].flat)
