r"""One JSON object a line, written and read. Lines end at ``\n`` alone."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from vision_bench.wire.shapes import parse_json

MEDIA_TYPE = "application/x-ndjson"


def finite(value: Any) -> Any:
    """``value`` with every NaN and infinity replaced by None, at any depth: strict JSON has no word for them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def dump_line(record: dict[str, Any]) -> bytes:
    r"""One UTF-8 line ending in ``\n``. Strict JSON whatever came in: NaN becomes null, a lone surrogate an escape."""
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(finite(record), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(finite(record), allow_nan=False, separators=(",", ":")).encode() + b"\n"


class LineSplitter:
    r"""Bytes in, whole lines out, however they were chunked.

    Splits on ``\n`` alone: U+2028, U+0085 and ``\r`` may stand inside a JSON string, where
    ``str.splitlines`` would cut them.
    """

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Lines that ``data`` completes, without their ends and without empty ones."""
        self._rest += data
        if b"\n" not in data:
            return []
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        return [line for line in (line.strip(b"\r \t") for line in lines) if line]

    def close(self) -> list[bytes]:
        """The last line if it had no end."""
        rest, self._rest = bytes(self._rest).strip(b"\r \t"), bytearray()
        return [rest] if rest else []


def read_lines(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Objects of a whole NDJSON byte stream.

    Raises:
        ValueError: a line that is not a JSON object; the message names the line.
    """
    splitter = LineSplitter()
    number = 0

    def parse(line: bytes) -> dict[str, Any]:
        try:
            record = parse_json(line)
        except ValueError as problem:
            raise ValueError(f"line {number} is not JSON: {problem}") from problem
        if not isinstance(record, dict):
            raise ValueError(f"line {number} is {type(record).__name__}, not an object")
        return record

    for chunk in chunks:
        for line in splitter.feed(chunk):
            number += 1
            yield parse(line)
    for line in splitter.close():
        number += 1
        yield parse(line)
