"""Which two processors a checkpoint's file asks to compare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.preprocess_cases import GEMMA_IMAGE, GEMMA_VIDEO, QWEN2_IMAGE, QWEN3_VIDEO, noise

from vision_bench.errors import UnknownName
from vision_bench.preprocess.equivalence import Shapeless, Unequal, check, compare
from vision_bench.preprocess.gemma import GemmaSpec, plain
from vision_bench.preprocess.pairs import image_pair, video_pair

CONFIGS = [
    pytest.param(video_pair, QWEN3_VIDEO, noise(1, 3, 70, 101), id="qwen-video"),
    pytest.param(image_pair, QWEN2_IMAGE, noise(1, 70, 101), id="qwen-image"),
    pytest.param(video_pair, {"video_processor": GEMMA_VIDEO}, noise(1, 3, 70, 101), id="gemma-video"),
    pytest.param(image_pair, {"image_processor": GEMMA_IMAGE}, noise(1, 70, 101), id="gemma-image"),
]


@pytest.mark.parametrize(("pair_of", "config", "pixels"), CONFIGS)
def test_ours_and_the_oracle_of_every_family(pair_of: Any, config: dict[str, Any], pixels: Any) -> None:
    """Each family by the class that its file names; a value that is off by a level is found and measured as one."""
    pair = pair_of(config, "reference", 1)
    assert check(pair.ours, pair.theirs, pair.spec, [pixels], pair.against).level == "E0"
    off = pair.theirs(pixels)
    off.pixel_values[0, 0] += np.float32(1 / (255 * (pair.spec.std or (1,))[0]))
    found = compare(pair.ours(pixels), off, pair.spec)
    assert (found.level, found.differing, found.first) == ("E2", 1, (0, 0))
    assert found.largest_levels == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("pair_of", [video_pair, image_pair])
def test_what_there_is_no_pair_of_is_refused(pair_of: Any) -> None:
    """Gemma's PIL backend, and a word that names nothing."""
    config = {"image_processor": GEMMA_IMAGE, "video_processor": GEMMA_VIDEO}
    with pytest.raises(UnknownName, match="PIL-backed"):
        pair_of(config, "pil", 1)
    with pytest.raises(UnknownName, match="'other' is none of stock, reference and pil"):
        pair_of(config, "other", 1)


def test_gemmas_places_and_tokens_are_compared_too() -> None:
    """A patch that lies elsewhere, or another number of tokens, is no equality even if every value is."""
    spec = GemmaSpec.from_config(GEMMA_VIDEO, "video")
    right = plain(noise(1, 2, 70, 101), spec)
    places = right.positions.copy()
    places[1, 3] = places[1, 4]
    with pytest.raises(Unequal, match="not row by row"):
        right._replace(positions=places).flat()
    assert right.flat().pixel_values.shape == (2 * spec.max_patches, spec.patch_values)
    with pytest.raises(Shapeless):
        compare(right._replace(tokens=right.tokens + 1).flat(), right.flat(), spec)
    assert np.array_equal(right.flat().pixel_values.reshape(right.pixel_values.shape), right.pixel_values)
