"""Whether a study met one model under one name."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.bench.envelope.stale import has_several_models

ONE, OTHER = {"root_sha256": "a", "max_model_len": 4096}, {"root_sha256": "b", "max_model_len": 4096}


@pytest.mark.parametrize(
    ("models", "several"),
    [
        ([ONE, ONE], False),
        ([ONE, OTHER], True),
        ([ONE, {"max_model_len": 8192}], True),
        ([ONE, {"max_model_len": 4096}, ONE], False),  # a gateway tells less
        ([ONE, {}, OTHER], True),
        ([{}, {}], False),
    ],
)
def test_what_the_servers_told_says_whether_the_model_changed(models: list[dict[str, Any]], several: bool) -> None:
    """Only what two of them told can differ."""
    assert has_several_models([{"model": model} for model in models]) is several
