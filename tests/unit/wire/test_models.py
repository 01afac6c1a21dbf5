"""wire.models: a model list without what must not leak."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vision_bench.wire.models import Model, read_models, shown_models


def test_reads_vllms_list() -> None:
    """Id and context length are kept; of the checkpoint's path a hash alone, and none where it is the id."""
    body = {"object": "list", "data": [{"id": "qwen", "root": "/srv/models/qwen", "max_model_len": 4096}]}
    assert read_models(body) == [Model("qwen", "ready", 4096, root_sha256="5aff3c357a5020e6")]
    assert read_models({"data": [{"id": "a", "root": "a"}, {"id": "b", "root": 5}]}) == [Model("a"), Model("b")]


def test_what_is_shown_of_vllms_list_is_what_clients_need() -> None:
    """Of a real list: id, owner, times, length. ``root`` is the id and no path; fields nobody reads are gone."""
    capture = Path(__file__).parents[2] / "golden" / "vllm_captures" / "08b_models.json"
    (card,) = shown_models([json.loads(capture.read_bytes())["response"]])["data"]
    assert card == {
        "id": "tiny-omni",
        "object": "model",
        "created": 1796032527,
        "owned_by": "vllm",
        "max_model_len": 4096,
        "root": "tiny-omni",
        "parent": None,
    }


def test_several_lists_are_one_with_each_id_once() -> None:
    """In the servers' order; the first server's card is the one that is shown."""
    bodies = [{"data": [{"id": "a", "owned_by": "first"}]}, {"data": [{"id": "b"}, {"id": "a", "owned_by": "second"}]}]
    shown = shown_models(bodies)["data"]
    assert [(card["id"], card.get("owned_by")) for card in shown] == [("a", "first"), ("b", None)]


@pytest.mark.parametrize(
    ("parent", "shown"), [("base", "base"), ("/srv/models/base", None), ("elsewhere", None), (["base"], None)]
)
def test_a_parent_is_shown_only_where_it_is_a_listed_model(parent: Any, shown: Any) -> None:
    """An adapter may name a served base model; a path or a name that nobody can ask for is left out."""
    cards = [{"id": "base", "root": "/srv/models/base"}, {"id": "adapter", "root": "/srv/lora", "parent": parent}]
    listed = shown_models([{"data": cards}])
    assert listed["data"][1]["parent"] == shown
    assert "/srv" not in json.dumps(listed)


def test_values_of_other_kinds_are_left_out() -> None:
    """A field that holds an object could hold anything."""
    assert "owned_by" not in shown_models([{"data": [{"id": "a", "owned_by": {"path": "/srv"}}]}])["data"][0]


def test_a_server_may_say_that_a_model_is_unavailable() -> None:
    """`status: unavailable` is kept; any other word means it is listed, so ready."""
    body = {"data": [{"id": "a", "status": "unavailable"}, {"id": "b", "status": "ready"}, {"id": 7}]}
    assert read_models(body) == [Model("a", "unavailable"), Model("b")]


@pytest.mark.parametrize("body", [{}, {"data": None}, [], "x"])
def test_what_is_no_list_is_refused(body: object) -> None:
    """An error page is not an empty list of models."""
    for read in (read_models, lambda body: shown_models([body])):
        with pytest.raises(ValueError, match="data"):
            read(body)
