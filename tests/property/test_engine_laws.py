"""Laws of the embedded engine: text cut into tokens, stop strings over any cutting, values for any schema."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from vision_bench.engine.chat.model import pieces
from vision_bench.engine.chat.schema_fill import fill
from vision_bench.engine.chat.stops import StopFilter

LETTERS = st.text(alphabet="ab<c \n한", max_size=60)
SCALARS = st.one_of(
    st.builds(
        lambda low, span: {"type": "integer", "minimum": low, "maximum": low + span}, st.integers(), st.integers(0, 9)
    ),
    st.builds(
        lambda low, span: {"type": "string", "minLength": low, "maxLength": low + span},
        st.integers(0, 40),
        st.integers(0, 9),
    ),
    st.builds(lambda options: {"enum": options}, st.lists(st.text(max_size=5), min_size=1, max_size=3, unique=True)),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": "number"}, {"type": ["string", "null"]}]),
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(
            lambda item, low: {"type": "array", "items": item, "minItems": low, "maxItems": low + 2},
            inner,
            st.integers(0, 3),
        ),
        st.builds(
            lambda properties: {
                "type": "object",
                "properties": properties,
                "required": sorted(properties),
                "additionalProperties": False,
            },
            st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=4),
        ),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=8,
)


@given(st.text())
def test_pieces_lose_nothing(text: str) -> None:
    """Joined, they are the text; none is empty."""
    found = pieces(text)
    assert "".join(found) == text
    assert all(found)


@given(LETTERS, st.lists(st.text(alphabet="ab<c한", min_size=1, max_size=4), min_size=1, max_size=3), st.data())
def test_stop_strings_do_not_depend_on_the_cutting(text: str, stops: list[str], data: st.DataObject) -> None:
    """However the text is cut, what leaves ends before a stop string, and nothing of one is among it."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    bounds = [0, *cuts, len(text)]
    parts = [text[start:end] for start, end in pairwise(bounds)]
    stop_filter, out, stopped = StopFilter(tuple(stops)), "", None
    for number, part in enumerate(parts):
        released = stop_filter.feed(part, is_last=number == len(parts) - 1)
        out += released.text
        stopped = released.stopped_by
        if stopped is not None:
            break
    assert text.startswith(out)
    assert not any(stop in out for stop in stops)
    if stopped is None:
        assert out == text
    else:
        assert text[len(out) :].startswith(stopped)


@given(SCHEMAS, st.text(max_size=60))
def test_filled_values_are_valid(schema: dict[str, Any], text: str) -> None:
    """A validator that is not ours accepts what any such schema is filled with."""
    jsonschema.Draft202012Validator(schema).validate(fill(schema, text))
