"""An answer in the form asked for."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from tests.unit.engine.chat.perception.facts import BLACKOUT, NORMAL, UNHEARD

from vision_bench.answers.analysis import analysis_schema
from vision_bench.engine.chat.model import BadChatRequest, ChatRequest
from vision_bench.engine.chat.perception.forms import answer, answer_without_media, choose, shortened
from vision_bench.engine.chat.perception.observation import Observation
from vision_bench.engine.chat.perception.wording import INTRODUCTION, describe


def asked(**form: Any) -> ChatRequest:
    return ChatRequest(request_id="r", model="qwen", prompt="?", system="", media=(), max_tokens=1024, **form)


def filled(schema: dict[str, Any], seen: Observation = NORMAL) -> Any:
    """The answer, which must be valid."""
    value = json.loads(answer(seen, asked(schema=schema), "en"))
    jsonschema.validate(value, schema)
    return value


def test_the_default_question_gets_its_four_fields() -> None:
    """Each field holds its own description, in the schema's order."""
    assert filled(analysis_schema()) == describe(NORMAL, "en")
    assert list(filled(analysis_schema())) == ["scene", "speech", "on_screen_text", "summary"]


def test_properties_named_after_a_measurement_hold_it() -> None:
    """Numbers, truths and lists of a user's own schema, by name, wherever they stand."""
    schema = {
        "type": "object",
        "properties": {
            "video": {
                "type": "object",
                "properties": {"cuts": {"type": "integer"}, "is_black": {"type": "boolean"}},
                "required": ["cuts", "is_black"],
            },
            "speech_seconds": {"type": "number"},
            "has_speech": {"type": "boolean"},
            "texts": {"type": "array", "items": {"type": "string"}},
            "description": {"type": "string"},
        },
        "required": ["video", "speech_seconds", "has_speech", "texts", "description"],
        "additionalProperties": False,
    }
    assert filled(schema) == {
        "video": {"cuts": 1, "is_black": False},
        "speech_seconds": 3.4,
        "has_speech": True,
        "texts": ["TIGERS 3 : 2 BEARS", "INNING 4"],
        "description": describe(NORMAL, "en")["summary"],
    }
    assert filled(schema, BLACKOUT)["video"] == {"cuts": 0, "is_black": True}


def test_a_measurement_takes_the_type_asked_for() -> None:
    """3.4 s as an integer is 3, as a string is "3.4"; a list of texts as a number is how many."""
    schema = {"type": "object", "properties": {"speech_seconds": {"type": "integer"}, "texts": {"type": "integer"}}}
    assert filled(schema) == {"speech_seconds": 3, "texts": 2}
    assert filled({"type": "object", "properties": {"cuts": {"type": "string"}}}) == {"cuts": "1"}


def test_a_measurement_that_does_not_fit_is_not_forced() -> None:
    """Bounds win: an answer must be valid before it can be right."""
    assert filled({"type": "object", "properties": {"cuts": {"type": "integer", "minimum": 5}}}) == {"cuts": 5}


def test_what_was_not_measured_is_the_first_value_allowed() -> None:
    """An enum nobody measured gives its first member; sound that was not given has no seconds to tell."""
    schema = {"type": "object", "properties": {"mood": {"enum": ["sad", "gay"]}, "speech_seconds": {"type": "number"}}}
    assert filled(schema, UNHEARD) == {"mood": "sad", "speech_seconds": 0}


def test_a_short_string_keeps_the_measured_line_while_it_fits() -> None:
    """A summary with room for the line alone loses its words, one of 40 characters is cut."""
    summary = describe(NORMAL, "en")["summary"]
    line = summary[summary.index("[measured") :]
    schema = {"type": "object", "properties": {"summary": {"type": "string", "maxLength": len(line) + 10}}}
    assert len(line) + 10 < len(summary)
    assert filled(schema)["summary"] == line
    schema["properties"]["summary"]["maxLength"] = 40  # type: ignore[index]
    assert filled(schema)["summary"] == summary[:39] + "…"
    assert shortened("abc", 0) == "" and shortened("abc", 1) == "a"


def test_a_nested_short_string_is_shortened_too() -> None:
    """The limit of a referenced definition is met, though it is not looked up."""
    schema = {
        "type": "object",
        "properties": {"part": {"$ref": "#/$defs/part"}},
        "$defs": {"part": {"type": "object", "properties": {"scene": {"type": "string", "maxLength": 20}}}},
    }
    assert 0 < len(filled(schema)["part"]["scene"]) <= 20


def test_a_schema_that_cannot_be_filled_is_refused() -> None:
    """400 and the reason, rather than an answer that breaks the schema."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=x)y$"}}, "required": ["a"]}
    with pytest.raises(BadChatRequest, match="cannot fill this schema") as refused:
        answer(NORMAL, asked(schema=schema), "en")
    assert refused.value.status == 400 and refused.value.param == "response_format"


def test_a_reference_to_another_document_is_never_fetched() -> None:
    """A schema that points at an address gets no answer through the network."""
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}
    with pytest.raises(BadChatRequest, match="nothing is fetched"):
        answer(NORMAL, asked(schema=schema), "en")


def test_any_object_is_the_four_fields() -> None:
    """json_object names no fields, so it gets ours."""
    assert json.loads(answer(NORMAL, asked(json_object=True), "en")) == describe(NORMAL, "en")


def test_a_choice_that_the_description_holds_is_taken() -> None:
    """ "black" of a black clip; the first where nothing tells."""
    assert choose(("bright", "black"), describe(BLACKOUT, "en")) == "black"
    assert choose(("cat", "dog"), describe(NORMAL, "en")) == "cat"
    assert answer(BLACKOUT, asked(choices=("cat", "black")), "en") == "black"


def test_a_pattern_gets_a_measurement_that_matches_it() -> None:
    """A pattern for a decimal gets the first decimal measured; one that nothing matches gets a made-up text."""
    assert answer(NORMAL, asked(regex=r"-\d+\.\d"), "en") == "-23.1"
    assert answer(NORMAL, asked(regex="[xyz]{3}"), "en") == "xxx"


def test_without_media_it_says_what_it_is_in_any_form() -> None:
    """Text, JSON object, schema and choice, in the language asked for."""
    korean = INTRODUCTION["ko"]
    assert answer_without_media(asked(), "ko") == korean
    assert json.loads(answer_without_media(asked(json_object=True), "ko")) == {"answer": korean}
    assert answer_without_media(asked(choices=("a", "b")), "ko") == "a"
    value = json.loads(answer_without_media(asked(schema=analysis_schema()), "ko"))
    jsonschema.validate(value, analysis_schema())
    assert value["summary"] == korean
