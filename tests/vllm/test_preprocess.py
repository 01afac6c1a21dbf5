"""Our patches beside those of the transformers that vLLM runs with, in its own environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.preprocess_cases import GEMMA_IMAGE, GEMMA_VIDEO, QWEN2_IMAGE, QWEN2_VIDEO, QWEN3_VIDEO
from tests.vllm.environment import VllmEnvironment
from tests.vllm.inside import run

RUN = "import sys; from vision_bench.cli.equivalence import command; sys.exit(command(standalone_mode=False))"


PIL = """
import json, sys
from vision_bench.preprocess import reference, stock
from vision_bench.preprocess.equivalence import check, sample_images
from vision_bench.preprocess.spec import ImageSpec
spec = ImageSpec.from_config(sys.argv[1])
oracle = lambda pixels: reference.image(pixels, spec, "pil")
print(check(oracle, stock.stock_image(spec, "pil"), spec, sample_images(20, 0), "").level)
"""


@pytest.mark.parametrize("instructions", ["", "default"], ids=["", "without-avx2"])
@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        (QWEN3_VIDEO, []),
        (QWEN2_VIDEO, ["--threads", "2"]),
        (QWEN2_IMAGE, ["--images"]),
        (GEMMA_VIDEO, ["--threads", "2"]),
        (GEMMA_IMAGE, ["--images"]),
    ],
    ids=["qwen3-video", "qwen2-video", "qwen2-image", "gemma4-video", "gemma4-image"],
)
def test_every_byte_is_the_stock_processors(
    settings: dict[str, Any],
    flags: list[str],
    instructions: str,
    vllm_environment: VllmEnvironment,
    tmp_path: Path,
) -> None:
    """E0 over 20 sizes, with and without the vector instructions that torch uses; compiled by the Numba of vLLM.

    Of Gemma 4 also every place and count of tokens.
    """
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    chosen = {"ATEN_CPU_CAPABILITY": instructions} if instructions else {}
    arguments = [tmp_path / "settings.json", "--cases", "20", "--json", *flags]
    found = run(vllm_environment, RUN, *arguments, **chosen)
    assert found.returncode == 0, found.stderr[-2000:]
    verdict = json.loads(found.stdout)
    assert verdict["level"] == "E0"
    assert len(verdict["cases"]) >= 18  # two inputs of one size count once
    assert "transformers 5.19" in verdict["against"]


def test_the_pil_backend_is_that_backend(vllm_environment: VllmEnvironment, tmp_path: Path) -> None:
    """E0 with the same Pillow: the oracle, and the fast way over 20 sizes."""
    (tmp_path / "settings.json").write_text(json.dumps(QWEN2_IMAGE))
    found = run(vllm_environment, PIL, tmp_path / "settings.json")
    assert found.stdout.strip() == "E0", found.stderr[-2000:]
    fast = run(vllm_environment, RUN, tmp_path / "settings.json", "--images", "--against", "pil", "--cases", "20")
    assert fast.returncode == 0, fast.stderr[-2000:]
    assert "E0 against the PIL backend" in fast.stdout
