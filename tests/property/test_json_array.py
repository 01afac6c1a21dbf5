"""The array scanner against the standard library's parser: any JSON, any spacing, any chunking."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from vision_bench.wire.json_array import ArrayScanner

# Text with what could lead a scanner astray: quotes, backslashes, brackets, the key itself.
texts = st.text(
    st.sampled_from('ab"\\{}[]:, \n가\u2028\U0001f600') | st.characters(codec="utf-8"), max_size=8
) | st.just("items")
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=4)
spaces = st.text(" \t\r\n", max_size=2)


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """``value`` as JSON with spacing of every kind, and letters escaped or not."""
    space = draw(spaces)
    if isinstance(value, dict):
        pairs = [f"{draw(written(name))}{space}:{draw(written(inner))}" for name, inner in value.items()]
        return f"{space}{{{space}{','.join(pairs)}{space}}}{space}"
    if isinstance(value, list):
        return f"{space}[{space}{','.join(draw(written(inner)) for inner in value)}{space}]{space}"
    return space + json.dumps(value, ensure_ascii=draw(st.booleans())) + space


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, list[dict[str, Any]]]:
    """A body with its items somewhere among other fields, and the items."""
    items = draw(st.lists(objects, max_size=4))
    others = draw(st.dictionaries(texts.filter(lambda text: text != "items"), values, max_size=3))
    fields = draw(st.permutations([*others.items(), ("items", items)]))
    text = draw(written(dict(fields)))
    if draw(st.booleans()):
        text = text.replace('"items"', '"it\\u0065ms"', 1) if "items" not in json.dumps(others) else text
    return text.encode(), items


def scan(body: bytes, cuts: list[int]) -> tuple[list[bytes], ArrayScanner]:
    scanner, found = ArrayScanner("items", most=1000, most_around_bytes=10_000), []
    places = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        found += scanner.feed(body[start:end])
    return found, scanner


@settings(max_examples=150, deadline=None)
@given(bodies(), st.lists(st.integers(0, 10_000), max_size=12))
def test_the_objects_are_those_a_parser_finds(body: tuple[bytes, list[dict[str, Any]]], cuts: list[int]) -> None:
    """However it is cut: the same objects in the same order, each from its own bytes; what is left is JSON too."""
    text, items = body
    found, scanner = scan(text, cuts)
    assert [json.loads(raw) for raw in found] == items
    assert scanner.count == len(items)
    assert all(raw in text for raw in found)
    skeleton = json.loads(scanner.skeleton)
    assert skeleton == {**json.loads(text), "items": [{} for _ in items]}


@settings(max_examples=150, deadline=None)
@given(st.text('{}[]":,\\ items0', max_size=40), st.lists(st.integers(0, 100), max_size=5))
@example('{"items":[{}],"items":[{}]}', [])
@example('{"items":[{]]}', [])
@example('{"items":[{}{}]}', [])
@example('{"items" "items":[{}]}', [])
@example('{"items":[{"a":1}}}', [])
def test_what_is_no_json_never_passes(text: str, cuts: list[int]) -> None:
    """If every object found and the skeleton are JSON, and the skeleton counts what was found, so was the whole."""
    found, scanner = scan(text.encode(), cuts)
    try:
        for raw in found:
            json.loads(raw)
        skeleton = json.loads(scanner.skeleton)
        is_good = isinstance(skeleton, dict) and len(skeleton.get("items", [])) == scanner.count
    except (ValueError, TypeError):
        is_good = False
    if is_good:
        json.loads(text)


@settings(max_examples=80, deadline=None)
@given(bodies())
def test_an_object_comes_with_its_last_byte(body: tuple[bytes, list[dict[str, Any]]]) -> None:
    """Fed byte by byte, each object is given out with its own last brace and not a byte later."""
    text, items = body
    scanner, seen = ArrayScanner("items", most=1000, most_around_bytes=10_000), 0
    for place in range(len(text)):
        for raw in scanner.feed(text[place : place + 1]):
            assert text[: place + 1].endswith(raw)
            seen += 1
    assert seen == len(items)
