"""Objects of an array, taken out of a body that is still coming."""

from __future__ import annotations

import pytest

from vision_bench.wire.json_array import ArrayScanner


def test_objects_come_before_the_end_of_the_body() -> None:
    """The first is there while the second is half read; the skeleton keeps their places."""
    scanner = ArrayScanner("items")
    assert scanner.feed(b'{"n": 1, "items": [{"a": "}]"}, {"b"') == [b'{"a": "}]"}']
    assert scanner.feed(b": [{}]}") == [b'{"b": [{}]}']
    assert scanner.feed(b' ], "m": "x"}\n') == []
    assert scanner.skeleton == b'{"n": 1, "items": [{}, {} ], "m": "x"}\n'


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b'{"other": {"items": [{}]}}', 0),
        (b'[{"items": [{}]}]', 0),
        (b'{"items": {"items": [{}]}}', 0),
        (b'{"x": "items", "y": [{}]}', 0),
        (b'{"items": [{}, 3, {}]}', 1),
        (b'{"items": [{}], "items": [{}, {}]}', 1),
        (b'{"items": []}', 0),
    ],
)
def test_only_the_array_under_the_outer_key_counts(body: bytes, count: int) -> None:
    """Deeper keys, values that read like the key, and what follows an element that is no object are left alone."""
    scanner = ArrayScanner("items")
    assert len(scanner.feed(body)) == count


def test_quotes_behind_backslashes() -> None:
    """An odd number of backslashes keeps the string open, an even number does not, cut anywhere."""
    element = rb'{"a":"x\"}","b":"y\\","c":"\\\"}"}'
    body = b'{"items":[' + element + b"]}"
    for cut in range(len(body)):
        scanner = ArrayScanner("items")
        assert scanner.feed(body[:cut]) + scanner.feed(body[cut:]) == [element]


def test_a_large_string_is_not_read_letter_by_letter() -> None:
    """A hundred megabytes of base64 in pieces take less than the time in which a Python loop reads one."""
    scanner = ArrayScanner("items")
    scanner.feed(b'{"items":[{"clip":"')
    piece = b"QUJD" * 65536
    for _ in range(400):
        assert scanner.feed(piece) == []
    (found,) = scanner.feed(b'"}')
    assert len(found) == 400 * len(piece) + 11
