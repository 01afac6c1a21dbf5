"""Values for schemas, checked by jsonschema."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from vision_bench.engine.chat.schema_fill import fill

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "child": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["name", "child"],
        }
    },
}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "string", "maxLength": 5},
        {"type": "string", "maxLength": 0},
        {"type": "string", "minLength": 300, "maxLength": 310},
        {"type": "string", "pattern": "^[A-Z]{2}-\\d+$"},
        {"type": "string", "format": "date"},
        {"enum": ["x", 3]},
        {"const": {"a": 1}},
        {"type": "integer", "minimum": -9, "maximum": -3},
        {"type": "integer", "exclusiveMinimum": 3, "multipleOf": 5},
        {"type": "integer", "minimum": 1.5},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "number", "multipleOf": 0.5, "minimum": 0.7},
        {"type": ["null", "boolean"]},
        {"type": "null"},
        {"type": "array", "items": {"type": "integer"}, "minItems": 3},
        {"type": "array", "items": {"type": "string"}, "minItems": 3, "uniqueItems": True},
        {"type": "array", "maxItems": 0},
        {"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": False},
        {"type": "object"},
        {"type": "object", "required": ["loose"]},
        {"properties": {"a": {}}, "additionalProperties": False},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]}]},
        {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"type": "integer"}}}]},
        TREE,
    ],
)
def test_value_is_valid(schema: dict[str, Any]) -> None:
    """Whatever the keyword, the value passes a validator that is not ours."""
    jsonschema.Draft202012Validator(schema).validate(fill(schema, "a few words of text"))


def test_strings_hold_the_text_cut_to_their_length() -> None:
    """Not padding, not placeholders."""
    assert fill({"type": "string", "maxLength": 8}, "a few words") == "a few wo"


def test_every_property_is_filled_in_order() -> None:
    """Optional ones too: a client sees all its fields."""
    schema = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "null"}}, "required": ["a"]}
    assert list(fill(schema, "x")) == ["b", "a"]
