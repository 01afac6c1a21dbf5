"""answers.schema: references stay inside the file, and a schema that cannot work is refused when it is read."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from vision_bench.answers.analysis import Question, load_question
from vision_bench.answers.validate import validate
from vision_bench.errors import InvalidRequest
from vision_bench.wire.chat import Reply

LOCAL = {
    "$defs": {"line": {"type": "string", "maxLength": 3}, "tree": {"properties": {"next": {"$ref": "#/$defs/tree"}}}},
    "properties": {"a": {"$ref": "#/$defs/line"}, "b": {"$ref": "#/$defs/tree"}, "c": {"$ref": "part"}},
    "$id": "https://schemas.example/root",
    "allOf": [{"$id": "https://schemas.example/part", "type": "object"}],
}


def load(tmp_path: Path, schema: Any) -> Question:
    file = tmp_path / "s.json"
    file.write_text(json.dumps(schema))
    return load_question(schema_file=file)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"$ref": "file:///etc/hostname"}, "nothing is fetched"),
        ({"properties": {"a": {"$ref": "http://127.0.0.1:9/s.json"}}}, "nothing is fetched"),
        ({"items": {"anyOf": [{"$ref": "#/$defs/none"}]}, "$defs": {}}, "leads nowhere"),
        ({"$ref": "#/odd/a", "odd": {"a": {"$ref": "#nowhere"}}}, "leads nowhere"),
        ({"$dynamicRef": "#none"}, "leads nowhere"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "other.json"}, "nothing is fetched"),
        ({"$ref": "#"}, "refers to itself without end"),
        ({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}, "without end"),
        ({"properties": {"a": {"pattern": "("}}}, "not a 'regex'"),
        ({"patternProperties": {"[": {}}}, "not a 'regex'"),
        ({"$schema": 5}, "not text"),
        ({"$ref": "http://["}, "JSON schema"),
    ],
)
def test_what_no_answer_could_be_held_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: Any, says: str
) -> None:
    """With the file's name, before anything is sent, and without a look at the network."""
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_: pytest.fail("fetched"))
    with pytest.raises(InvalidRequest, match=f"s.json.*{says}"):
        load(tmp_path, schema)


def test_references_within_the_file_work(tmp_path: Path) -> None:
    """By pointer, by $id, and back to a part that holds them; what only looks like one is data."""
    question = load(tmp_path, LOCAL | {"const": {"a": "xyz", "b": {"next": {"next": {}}}, "c": {}}})
    good = '{"a": "xyz", "b": {"next": {"next": {}}}, "c": {}}'
    assert validate(Reply(good), question).outcome == "ok"
    assert validate(Reply('{"a": "long"}'), load(tmp_path, LOCAL)).outcome == "schema_mismatch"
    assert load(tmp_path, {"enum": [{"$ref": "none"}], "properties": {"$ref": {"type": "string"}}}).schema


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 2000 + "]" * 2000])
def test_an_answer_nested_without_end_is_not_json(text: str) -> None:
    """One line's failure, not the run's."""
    assert validate(Reply(text), Question("?", {"type": "array"})).outcome == "invalid_json"


def test_an_answer_too_deep_for_its_schema_is_a_mismatch() -> None:
    """A schema may double the depth at which an answer is looked at."""
    schema: dict[str, Any] = {"items": {"$ref": "#"}}
    for _ in range(30):
        schema = {"items": {"allOf": [schema["items"]]}}
    assert validate(Reply("[" * 60 + "]" * 60), Question("?", schema)).outcome in {"ok", "schema_mismatch"}
