"""The measuring client's quick parser takes, refuses and gives what the plain one does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vision_bench.bench.chat.target import quick_json
from vision_bench.wire.shapes import MAX_DEPTH, parse_json

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def outcome(parse: Any, text: str) -> Any:
    try:
        return json.dumps(parse(text))
    except ValueError:
        return "refused"


@given(values, st.booleans())
def test_what_json_wrote_is_read_alike(value: Any, ascii_only: bool) -> None:
    """Numbers of any size, NaN, infinities and half surrogate pairs among it."""
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert outcome(quick_json, text) == outcome(parse_json, text)


@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn\\u "\ud800', max_size=30))
def test_what_is_no_json_is_refused_alike(text: str) -> None:
    """And what is some by accident is read alike."""
    assert outcome(quick_json, text) == outcome(parse_json, text)


@pytest.mark.parametrize("depth", [1, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 100_000])
def test_depth_is_bounded_alike(depth: int) -> None:
    """A deep value is refused before anybody walks it."""
    text = "[" * depth + "]" * depth
    assert outcome(quick_json, text) == outcome(parse_json, text)
