"""wire.ndjson: one strict JSON object a line."""

from __future__ import annotations

import json

import pytest

from vision_bench.wire.ndjson import LineSplitter, dump_line, read_lines


def test_line_ends_at_newline_alone() -> None:
    """U+2028 and U+0085 inside a string do not cut the line; CRLF does not add one."""
    line = '{"a":"가\u2028나\u0085"}'.encode()
    assert LineSplitter().feed(line + b"\r\n\n") == [line]


def test_last_line_without_its_end_is_kept_for_close() -> None:
    """Half a line is not handed out before the stream has ended."""
    splitter = LineSplitter()
    assert splitter.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    assert splitter.close() == [b'{"b"']
    assert splitter.close() == []


def test_nan_and_lone_surrogates_still_give_strict_json() -> None:
    """Half of an emoji and a NaN from an upstream do not end a batch."""
    line = dump_line({"text": "\ud83d", "logprob": float("-inf")})
    assert json.loads(line.decode()) == {"text": "\ud83d", "logprob": None}


@pytest.mark.parametrize(
    ("data", "says"), [(b'{"a":1}\nnot json\n', "line 2 is not JSON"), (b"[1]\n", "line 1 is list")]
)
def test_what_is_no_object_is_named_by_its_line(data: bytes, says: str) -> None:
    """The message says which line."""
    with pytest.raises(ValueError, match=says):
        list(read_lines([data]))
