"""Gemma 4 and the PIL backend against digests that transformers made (tests/golden/preprocess_more.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
from tests.preprocess_cases import COMPILED, GEMMA_IMAGE, GEMMA_VIDEO, QWEN2_IMAGE, noise, sha256

from vision_bench.preprocess import reference
from vision_bench.preprocess.fast import ImagePreprocessor
from vision_bench.preprocess.gemma import GemmaPreprocessor, GemmaSpec, plain
from vision_bench.preprocess.spec import ImageSpec

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "preprocess_more.json").read_text(encoding="utf-8"))
PILLOW = GOLDEN["made_by"]["pillow"].partition(".")[0]
CASES = [pytest.param(case, id="x".join(map(str, case["shape"]))) for case in GOLDEN["cases"]]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("compiled", COMPILED)
def test_gemma_4(compiled: bool, case: dict[str, Any]) -> None:
    """Values and positions, of an image and of a clip: the fast way; the oracle is held to it elsewhere."""
    frames = noise(1, *case["shape"])
    image, video = GemmaSpec.from_config(GEMMA_IMAGE, "image"), GemmaSpec.from_config(GEMMA_VIDEO, "video")
    for name, spec, given in (("gemma_image", image, frames[:1]), ("gemma_video", video, frames)):
        found = GemmaPreprocessor(spec, compiled=compiled)(given)
        assert (sha256(found.pixel_values), sha256(found.positions)) == (case[name], case[f"{name}_positions"]), name
        assert np.array_equal(plain(given, spec).pixel_values, found.pixel_values)


@pytest.mark.skipif(
    not PIL.__version__.startswith(f"{PILLOW}."), reason=f"the digests are Pillow {PILLOW}'s, this is {PIL.__version__}"
)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("compiled", COMPILED)
def test_the_pil_backend(compiled: bool, case: dict[str, Any]) -> None:
    """The oracle and the fast way, where Pillow is the one that the digests were made with: its filters change."""
    spec, pixels = ImageSpec.from_config(QWEN2_IMAGE), noise(1, *case["shape"])[0]
    preprocess = ImagePreprocessor(spec, compiled=compiled, backend="pil")
    for found in (reference.image(pixels, spec, "pil"), preprocess(pixels)):
        assert sha256(found.pixel_values) == case["qwen2_image_pil"]
