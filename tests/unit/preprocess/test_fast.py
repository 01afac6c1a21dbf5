"""The fast way gives the oracle's bits, where it is told to, or says why not."""

from __future__ import annotations

import threading
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.preprocess_cases import (
    COMPILED,
    QWEN3_VIDEO,
    VIDEO_CONFIGS,
    golden_cases,
    golden_frames,
    noise,
    same_bits,
    sha256,
    small_image,
    small_video,
)

from vision_bench.errors import InvalidMedia, InvalidRequest, MissingExtra, MissingTool
from vision_bench.preprocess import fast, reference
from vision_bench.preprocess.fast import ImagePreprocessor, VideoPreprocessor
from vision_bench.preprocess.spec import VideoSpec

pytestmark = pytest.mark.parametrize("compiled", COMPILED)


def test_clips_have_the_oracles_bits(compiled: bool) -> None:
    """Both filters, one, none; an odd frame out; more threads than units."""
    spec = small_video()
    for threads in (1, 2, 5):
        with VideoPreprocessor(spec, threads=threads, compiled=compiled) as preprocess:
            for shape in ((5, 70, 101), (4, 64, 101), (4, 70, 96), (3, 64, 96), (2, 300, 500)):
                found, expected = preprocess(noise(1, *shape)), reference.video(noise(1, *shape), spec)
                assert same_bits(found.pixel_values, expected.pixel_values), shape
                assert found.grid_thw.tolist() == expected.grid_thw.tolist()


def test_images_have_the_oracles_bits(compiled: bool) -> None:
    """A patch of 14 pixels, CLIP's constants, the image twice in each row."""
    spec = small_image()
    preprocess = ImagePreprocessor(spec, compiled=compiled)
    for shape in ((56, 84), (100, 57), (31, 400), (400, 333)):
        assert same_bits(
            preprocess(noise(2, *shape)).pixel_values, reference.image(noise(2, *shape), spec).pixel_values
        )


def test_the_pil_backend_has_its_own_bits(compiled: bool) -> None:
    """Another filter and another way of normalising: resized or not, in every dtype, and unlike torchvision's."""
    spec = small_image()
    preprocess = ImagePreprocessor(spec, compiled=compiled, backend="pil")
    for shape in ((56, 84), (100, 57), (31, 400), (400, 333)):
        pixels = noise(2, *shape)
        expected = reference.image(pixels, spec, "pil").pixel_values
        assert same_bits(preprocess(pixels).pixel_values, expected), shape
        assert not same_bits(expected, reference.image(pixels, spec).pixel_values), shape
        half = ImagePreprocessor(spec, dtype="bfloat16", compiled=compiled, backend="pil")(pixels).pixel_values
        assert same_bits(half, reference.to_bfloat16(expected))
    raw = ImagePreprocessor(spec, dtype="uint8", compiled=compiled, backend="pil")
    channels = np.repeat(np.arange(3), spec.patch_values // 3)
    assert same_bits(raw.table()[channels, raw(pixels).pixel_values], expected)


def test_a_clip_has_no_pil_backend(compiled: bool) -> None:
    """transformers has none; it is refused by name."""
    with pytest.raises(InvalidRequest, match="backend 'pil' is not one of torchvision"):
        VideoPreprocessor(small_video(), compiled=compiled, backend="pil")


def test_other_dtypes_are_the_same_numbers_cut_short_or_not_yet_normalised(compiled: bool) -> None:
    """bfloat16 rounds the float32; uint8 through the table is the float32."""
    spec = small_image()
    pixels = noise(3, 100, 150)
    expected = reference.image(pixels, spec).pixel_values
    half = ImagePreprocessor(spec, dtype="bfloat16", compiled=compiled)(pixels).pixel_values
    assert same_bits(half, reference.to_bfloat16(expected))
    preprocess = ImagePreprocessor(spec, dtype="uint8", compiled=compiled)
    raw = preprocess(pixels).pixel_values
    assert raw.dtype == np.uint8
    channels = np.repeat(np.arange(3), spec.patch_values // 3)
    assert same_bits(preprocess.table()[channels, raw], expected)


def test_other_shapes_of_patch_and_tubelet(compiled: bool) -> None:
    """Nothing depends on 16, 2 and 2."""
    for changes in (
        {"temporal_patch_size": 3},
        {"temporal_patch_size": 1},
        {"merge_size": 1},
        {"merge_size": 3},
    ):
        spec = small_video(**changes)
        frames = noise(4, 4, 77, 93)
        found = VideoPreprocessor(spec, compiled=compiled)(frames)
        assert same_bits(found.pixel_values, reference.video(frames, spec).pixel_values), changes


def test_rows_and_frames_may_lie_anywhere(compiled: bool) -> None:
    """Every other frame, a cropped picture, rows from the bottom up, a column: no copy is asked for."""
    spec = small_video()
    preprocess = VideoPreprocessor(spec, compiled=compiled)
    whole = noise(5, 8, 100, 140)
    for view in (whole[::2], whole[:, 7:88, 11:120], whole[:, ::-1], whole[::-1, ::2], whole[:, :, ::140]):
        expected = reference.video(np.ascontiguousarray(view), spec)
        assert same_bits(preprocess(view).pixel_values, expected.pixel_values)


def test_the_input_stays_as_it_was_and_may_be_read_only(compiled: bool) -> None:
    """A decoder's buffer can be handed over."""
    frames = noise(6, 4, 70, 101)
    frames.flags.writeable = False
    before = frames.tobytes()
    VideoPreprocessor(small_video(), compiled=compiled)(frames)
    assert frames.tobytes() == before


def test_output_goes_where_the_caller_says(compiled: bool) -> None:
    """Into ``out``, wherever that begins in memory, and nowhere around it."""
    spec = small_video()
    frames = noise(7, 4, 70, 101)
    expected = reference.video(frames, spec).pixel_values
    preprocess = VideoPreprocessor(spec, compiled=compiled)
    room = np.full(expected.size + 2, 7, np.float32)
    out = room[1:-1].reshape(expected.shape)
    found = preprocess(frames, out=out)
    assert found.pixel_values is out
    assert same_bits(out, expected)
    assert room[0] == room[-1] == 7


def test_output_that_is_dropped_is_used_again_and_output_that_is_kept_is_not(compiled: bool) -> None:
    """Two results held at once are two; a third takes the place of one that is gone."""
    preprocess = VideoPreprocessor(small_video(), compiled=compiled)
    one, other = preprocess(noise(8, 4, 64, 64)), preprocess(noise(9, 4, 64, 64))
    assert not np.shares_memory(one.pixel_values, other.pixel_values)
    kept = one.pixel_values.tobytes()
    del other
    assert preprocess.pool.free_bytes > 0
    preprocess(noise(10, 4, 64, 64))
    assert one.pixel_values.tobytes() == kept


def test_the_stock_processors_digests(compiled: bool) -> None:
    """The smaller golden cases; the oracle is held to all of them, and the fast way to the oracle."""
    cases = [param.values[0] for param in golden_cases()]
    for case in cases:
        if case["H"] > (500 if compiled else 300):
            continue
        spec = VideoSpec.from_config(VIDEO_CONFIGS[case["family"]])
        found = VideoPreprocessor(spec, compiled=compiled)(golden_frames(case))
        assert sha256(found.pixel_values) == case["sha256"], case


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty((1, 1), np.float32), r"out is float32 \(1, 1\); this input needs float32 \(32, 1536\)"),
        (np.empty((32, 1536), np.float64), "out is float64"),
        (np.empty((1536, 32), np.float32).T, "C-contiguous"),
        ([1.0], "out is list"),
    ],
)
def test_output_that_does_not_fit_is_refused(compiled: bool, out: Any, message: str) -> None:
    """With the shape that would."""
    with pytest.raises(InvalidRequest, match=message):
        VideoPreprocessor(small_video(), compiled=compiled)(noise(11, 4, 64, 64), out=out)


def test_bad_frames_are_refused_before_anything_is_read(compiled: bool) -> None:
    """The compiled loops trust their addresses, so nothing else may reach them."""
    preprocess = VideoPreprocessor(small_video(), compiled=compiled)
    for bad in (np.zeros((4, 64, 64, 3), np.int8), np.zeros((4, 64, 64), np.uint8), noise(1, 4, 64, 128)[:, :, ::2]):
        with pytest.raises(InvalidMedia):
            preprocess(bad)
    with pytest.raises(InvalidMedia, match="1 frame"):
        preprocess(noise(1, 1, 64, 64))


def test_one_preprocessor_serves_many_threads(compiled: bool) -> None:
    """Calls of different sizes at once, each with its own bits."""
    spec = small_video()
    wrong: list[tuple[int, ...]] = []
    with VideoPreprocessor(spec, threads=2, compiled=compiled) as preprocess:

        def work(shape: tuple[int, int, int]) -> None:
            for seed in range(5):
                frames = noise(seed, *shape)
                if not same_bits(preprocess(frames).pixel_values, reference.video(frames, spec).pixel_values):
                    wrong.append(shape)

        threads = [threading.Thread(target=work, args=[shape]) for shape in ((4, 70, 101), (3, 64, 96), (6, 40, 200))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_settings_that_do_not_exist_are_refused(compiled: bool) -> None:
    """A dtype, a number of threads."""
    with pytest.raises(InvalidRequest, match="float16"):
        VideoPreprocessor(small_video(), dtype="float16", compiled=compiled)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="0 threads"):
        VideoPreprocessor(small_video(), threads=0, compiled=compiled)
    with pytest.raises(InvalidRequest, match=r"'2' threads cannot work; give a whole number"):
        VideoPreprocessor(small_video(), threads="2", compiled=compiled)  # type: ignore[arg-type]


def test_settings_of_another_kind_are_refused(compiled: bool) -> None:
    """An image's for videos, a video's for images, the parsed file itself: the message names what to call."""
    with pytest.raises(InvalidRequest, match=r"are a ImageSpec; VideoPreprocessor takes what VideoSpec.from_config"):
        VideoPreprocessor(small_image(), compiled=compiled)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match=r"are a VideoSpec; ImagePreprocessor takes what ImageSpec.from_config"):
        ImagePreprocessor(small_video(), compiled=compiled)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="are a dict"):
        VideoPreprocessor(QWEN3_VIDEO, compiled=compiled)  # type: ignore[arg-type]


def test_output_within_the_frames_is_refused(compiled: bool) -> None:
    """They are read while it is written: what came out would be of frames overwritten half-way."""
    spec = small_video()
    memory = np.zeros(32 * 1536 * 4, np.uint8)
    frames, out = memory[: 4 * 64 * 64 * 3].reshape(4, 64, 64, 3), memory.view(np.float32).reshape(32, 1536)
    with pytest.raises(InvalidRequest, match="out lies in the memory of the frames"):
        VideoPreprocessor(spec, compiled=compiled)(frames, out=out)


def test_a_closed_one_still_works(compiled: bool) -> None:
    """With the caller's thread alone; closing twice is nothing."""
    preprocess = VideoPreprocessor(small_video(), threads=3, compiled=compiled)
    before = preprocess(noise(12, 4, 70, 101))
    preprocess.close()
    preprocess.close()
    assert same_bits(preprocess(noise(12, 4, 70, 101)).pixel_values, before.pixel_values)


def test_without_numba_it_works_and_says_so(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning that names the extra; insisting is an error; asking for NumPy is silent."""
    monkeypatch.setattr(fast.importlib.util, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r"Numba is not installed.*vision-bench\[preprocess\]"):
        assert VideoPreprocessor(small_video()).compiled is False
    if compiled:
        with pytest.raises(MissingExtra, match=r"vision-bench\[preprocess\]"):
            VideoPreprocessor(small_video(), compiled=True)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            VideoPreprocessor(small_video(), compiled=False)


def test_a_numba_that_cannot_compile_is_as_none(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a NumPy that is too new for it, or switched off: NumPy works, and the warning has the reason."""

    def refuse(_name: str) -> None:
        raise ImportError("Numba needs NumPy 2.3 or less. Got NumPy 2.4.")

    off = SimpleNamespace(config=SimpleNamespace(DISABLE_JIT=1))
    for numba, reason in ((refuse, "Numba needs NumPy 2.3 or less"), (lambda _name: off, "NUMBA_DISABLE_JIT is set")):
        monkeypatch.setattr(fast.importlib, "import_module", numba)
        with pytest.warns(UserWarning, match=f"{reason}.*the same bits with NumPy alone"):
            assert VideoPreprocessor(small_video()).compiled is False
        if compiled:
            with pytest.raises(MissingTool, match=reason):
                VideoPreprocessor(small_video(), compiled=True)
