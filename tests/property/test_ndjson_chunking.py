"""Laws of NDJSON: one line a record, however it was cut and whatever is in it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vision_bench.wire.ndjson import dump_line, finite, read_lines

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(st.text(max_size=8), VALUES, max_size=4), max_size=4)


@given(RECORDS, st.integers(1, 50))
def test_records_survive_any_chunking(records: list[dict[str, Any]], step: int) -> None:
    """Written, cut anywhere and read again, records are equal but for NaN and infinity, which become null."""
    stream = b"".join(dump_line(record) for record in records)
    chunks = [stream[start : start + step] for start in range(0, len(stream), step)]
    assert list(read_lines(chunks)) == [finite(record) for record in records]


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
def test_a_line_is_strict_json_and_one_line(record: dict[str, Any]) -> None:
    """One newline, at the end; no NaN that strict parsers refuse."""
    line = dump_line(record)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(line, parse_constant=refuse)
