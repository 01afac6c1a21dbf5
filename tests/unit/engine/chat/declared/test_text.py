"""Declared answers' words."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from vision_bench.engine.chat.declared.text import ENGLISH, KOREAN, answer_tokens
from vision_bench.engine.chat.model import BadChatRequest, ChatRequest


def request(prompt: str = "Hello", **fields: Any) -> ChatRequest:
    return ChatRequest(request_id="r", model="qwen", prompt=prompt, system="", media=(), max_tokens=16, **fields)


FOUR_FIELDS = {
    "type": "object",
    "properties": {
        "scene": {"type": "string", "maxLength": 20},
        "speech": {"type": "string"},
        "score": {"type": "integer", "minimum": 3, "maximum": 9},
        "kind": {"enum": ["news", "docu"]},
    },
    "required": ["scene", "speech", "score", "kind"],
    "additionalProperties": False,
}


def test_free_text_is_in_the_language_of_the_prompt() -> None:
    """One Hangul letter makes it Korean."""
    assert "".join(answer_tokens(request("Describe."), None)) == ENGLISH
    assert "".join(answer_tokens(request("Describe 장면"), None)) == KOREAN


@pytest.mark.parametrize("count", [1, 7, 48, 500])
def test_declared_count_is_exact(count: int) -> None:
    """Free text and schema answers alike; the latter stay valid."""
    assert len(answer_tokens(request(), count)) == count
    tokens = answer_tokens(request(schema=FOUR_FIELDS), count)
    assert len(tokens) == count
    jsonschema.validate(json.loads("".join(tokens)), FOUR_FIELDS)


def test_no_token_is_empty() -> None:
    """An event without text would not be a token to a client."""
    for count in (1, 48, 5000):
        assert all(answer_tokens(request(schema=FOUR_FIELDS), count))


def test_schema_answer_is_korean_where_the_prompt_is() -> None:
    """Field values too."""
    answer = json.loads("".join(answer_tokens(request("장면을 설명하라", schema=FOUR_FIELDS), None)))
    assert answer["speech"] == KOREAN


def test_choices_and_regex_are_kept() -> None:
    """structured_outputs of the other kinds."""
    assert answer_tokens(request(choices=("yes", "no")), None) == ("yes",)
    assert "".join(answer_tokens(request(regex="[0-9]{3}"), None)).isdigit()


def test_json_object_is_one() -> None:
    """Any object will do."""
    assert isinstance(json.loads("".join(answer_tokens(request(json_object=True), None))), dict)


def test_pattern_that_cannot_be_filled_is_refused() -> None:
    """Look-ahead is not read."""
    with pytest.raises(BadChatRequest, match="Grammar error"):
        answer_tokens(request(regex="(?=a)b"), None)
