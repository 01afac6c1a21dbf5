"""Bodies that are not what they should be, and pydantic's words for it."""

from __future__ import annotations

import math

import pytest

from vision_bench.engine.chat.body import Fields, read_body, shown
from vision_bench.engine.chat.model import BadChatRequest


def test_nan_is_read_so_that_the_sampling_check_can_name_it() -> None:
    """Strict parsers refuse NaN; vLLM answers `temperature must be a finite number`."""
    assert math.isnan(read_body(b'{"temperature":NaN}', "application/json")["temperature"])


def test_charset_after_the_media_type_is_fine() -> None:
    """`application/json; charset=utf-8` is JSON."""
    assert read_body(b"{}", "Application/JSON; charset=utf-8") == {}


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "application/x-ndjson"])
def test_other_content_types_are_refused(content_type: str | None) -> None:
    """As in vLLM, with no parameter named."""
    with pytest.raises(BadChatRequest, match="Only 'application/json' is allowed") as caught:
        read_body(b"{}", content_type)
    assert caught.value.param is None


@pytest.mark.parametrize(
    ("data", "param"),
    [
        (b"", "body"),
        (b"[1,2]", "body"),
        (b"7", "body"),
        (b'{"a": ', "body.6"),
        (b"\xff\xfe", "body.0"),
        (b"{'a':1}", "body.1"),
    ],
)
def test_place_of_the_problem_is_the_parameter(data: bytes, param: str) -> None:
    """Malformed JSON names the offset, another value the body."""
    with pytest.raises(BadChatRequest) as caught:
        read_body(data, "application/json")
    assert (caught.value.status, caught.value.type, caught.value.param) == (400, "Bad Request", param)


def test_deep_nesting_is_a_refusal_and_no_crash() -> None:
    """100,000 open brackets."""
    with pytest.raises(BadChatRequest):
        read_body(b"[" * 100_000, "application/json")


def test_all_complaints_are_told_at_once() -> None:
    """Two wrong fields: `2 validation errors`, the first one as parameter."""
    fields = Fields({"max_tokens": "many", "stream": "perhaps"})
    assert fields.integer("max_tokens") is None
    assert fields.flag("stream") is False
    with pytest.raises(BadChatRequest) as caught:
        fields.refuse_if_any()
    assert caught.value.message.startswith("2 validation errors:\n  {'type': 'int_parsing', 'loc': 'body.max_tokens'")
    assert caught.value.param == "body.max_tokens"


@pytest.mark.parametrize(("value", "read"), [(16, 16), ("16", 16), (16.0, 16), (None, None)])
def test_whole_numbers_are_read_as_pydantic_does(value: object, read: int | None) -> None:
    """Digits in a string and 16.0 are whole numbers."""
    fields = Fields({"n": value})
    assert fields.integer("n") == read
    assert fields.problems == []


@pytest.mark.parametrize("value", [True, 1.5, [], {}, "1.5", math.inf])
def test_other_values_are_no_whole_number(value: object) -> None:
    """A boolean neither, although Python takes it for one."""
    fields = Fields({"n": value})
    assert fields.integer("n") is None
    assert len(fields.problems) == 1


def test_long_input_is_told_by_its_size() -> None:
    """An error must not repeat 25 MB of base64."""
    assert shown("x" * 5000) == "<str of 5000 characters>"
    assert shown({"a": 1}) == "<dict of 1 items>"
