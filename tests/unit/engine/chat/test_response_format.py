"""The form an answer is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.engine.chat.body import Fields
from vision_bench.engine.chat.model import BadChatRequest
from vision_bench.engine.chat.response_format import AnswerForm, read_answer_form, unsupported_type


def read(body: dict[str, Any]) -> AnswerForm:
    fields = Fields(body)
    form = read_answer_form(fields)
    fields.refuse_if_any()
    return form


def test_no_format_is_free_text() -> None:
    """Text, and nothing said, are the same."""
    assert read({}) == read({"response_format": {"type": "text"}}) == AnswerForm()


def test_schema_is_taken_from_either_field() -> None:
    """response_format.json_schema.schema and structured_outputs.json."""
    schema = {"type": "object"}
    assert read({"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}).schema == schema
    assert read({"structured_outputs": {"json": schema}}).schema == schema


def test_schema_format_without_a_schema_is_refused() -> None:
    """The parameter is response_format."""
    with pytest.raises(BadChatRequest, match="'json_schema' field must be provided") as caught:
        read({"response_format": {"type": "json_schema"}}).check()
    assert caught.value.param == "response_format"


def test_unknown_format_is_told_by_each_variant() -> None:
    """Six complaints, as pydantic's union makes them."""
    with pytest.raises(BadChatRequest, match=r"^6 validation errors:") as caught:
        read({"response_format": {"type": "xml"}})
    assert caught.value.param == "body.response_format.type"


@pytest.mark.parametrize(
    ("schema", "bad"),
    [
        ({"type": "notatype"}, "notatype"),
        ({"type": "object", "properties": {"a": {"type": ["string", "text"]}}}, "text"),
        ({"anyOf": [{"type": "null"}, {"items": {"type": "int"}}]}, "int"),
        ({"type": "object", "properties": {"type": {"type": "string"}}}, None),
        ({"enum": ["notatype"]}, None),
    ],
)
def test_types_that_json_does_not_have_are_found_anywhere(schema: dict[str, Any], bad: str | None) -> None:
    """A property that happens to be called `type` is no type."""
    assert unsupported_type(schema) == bad


def test_regex_that_does_not_compile_is_refused() -> None:
    """Before anything is generated."""
    with pytest.raises(BadChatRequest, match="Grammar error"):
        read({"structured_outputs": {"regex": "["}}).check()
