"""wire.models: a model list without what must not leak."""

from __future__ import annotations

import pytest

from vision_bench.wire.models import Model, read_models


def test_reads_vllms_list() -> None:
    """Id and context length are kept; the checkpoint's path is not."""
    body = {"object": "list", "data": [{"id": "qwen", "root": "/srv/models/qwen", "max_model_len": 4096}]}
    assert read_models(body) == [Model("qwen", "ready", 4096)]


def test_a_server_may_say_that_a_model_is_unavailable() -> None:
    """`status: unavailable` is kept; any other word means it is listed, so ready."""
    body = {"data": [{"id": "a", "status": "unavailable"}, {"id": "b", "status": "ready"}, {"id": 7}]}
    assert read_models(body) == [Model("a", "unavailable"), Model("b")]


@pytest.mark.parametrize("body", [{}, {"data": None}, [], "x"])
def test_what_is_no_list_is_refused(body: object) -> None:
    """An error page is not an empty list of models."""
    with pytest.raises(ValueError, match="data"):
        read_models(body)
