"""Objects of an array, taken out of a body that is still coming."""

from __future__ import annotations

import pytest

from vision_bench.wire.json_array import ArrayScanner


def test_objects_come_before_the_end_of_the_body() -> None:
    """The first is there while the second is half read; the skeleton keeps their places."""
    scanner = ArrayScanner("items", most=1000, most_around_bytes=10_000)
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
    scanner = ArrayScanner("items", most=1000, most_around_bytes=10_000)
    assert len(scanner.feed(body)) == count


def test_quotes_behind_backslashes() -> None:
    """An odd number of backslashes keeps the string open, an even number does not, cut anywhere."""
    element = rb'{"a":"x\"}","b":"y\\","c":"\\\"}"}'
    body = b'{"items":[' + element + b"]}"
    for cut in range(len(body)):
        scanner = ArrayScanner("items", most=1000, most_around_bytes=10_000)
        assert scanner.feed(body[:cut]) + scanner.feed(body[cut:]) == [element]


def test_a_large_string_is_not_read_letter_by_letter() -> None:
    """A hundred megabytes of base64 in pieces take less than the time in which a Python loop reads one."""
    scanner = ArrayScanner("items", most=1000, most_around_bytes=10_000)
    scanner.feed(b'{"items":[{"clip":"')
    piece = b"QUJD" * 65536
    for _ in range(400):
        assert scanner.feed(piece) == []
    (found,) = scanner.feed(b'"}')
    assert len(found) == 400 * len(piece) + 11


def test_the_search_ends_behind_the_most_objects() -> None:
    """One more is found, so that its reader sees that there are too many, and not the thousands behind it."""
    scanner = ArrayScanner("items", most=3, most_around_bytes=1000)
    assert len(scanner.feed(b'{"items":[' + b"{}," * 10_000)) == scanner.count == 4


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b'{"x":' + b"[" * 5000, 0),
        (b"{" + b'"a":1,' * 1000 + b'"items":[{}]}', 0),
        (b'{"items":[{},' + b" " * 5000 + b"{}]}", 2),
        (b'{"items":[{}], "x":"' + b"y" * 5000 + b'"}', 1),
        (b'{"items":[{},3,' + b'{"a":1},' * 1000, 1),
        (b'{"items":[{},{"a":"' + b"y" * 5000, None),
    ],
    ids=["brackets", "names", "blanks", "behind", "no object", "within an object"],
)
def test_what_stands_around_the_objects_is_bounded(body: bytes, count: int | None) -> None:
    """Wherever it stands; an object may be as long as it likes."""
    scanner = ArrayScanner("items", most=3, most_around_bytes=1000)
    scanner.feed(body)
    assert scanner.is_too_much_around == (count is not None)
    assert scanner.count == (1 if count is None else count)


@pytest.mark.parametrize("run", [0, 1, 2, 4095, 4096, 4097, 8191, 8192, 8193, 100_000])
def test_a_run_of_backslashes_of_any_length(run: int) -> None:
    """An even number of them in front of a quote ends the string, an odd number does not."""
    element = b'{"a":"' + b"\\" * run + b'"'
    scanner = ArrayScanner("items", most=3, most_around_bytes=1000)
    assert len(scanner.feed(b'{"items":[' + element + b"}")) == (run % 2 == 0)
