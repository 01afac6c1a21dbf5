"""The items of a batch, taken out of its body while the body is still coming."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from vision_bench.gateway.exchange import Refusal
from vision_bench.wire.json_array import ArrayScanner

_BYTE_NUMBER = re.compile(r" \(byte (\d+)\)")
_SHOWN_LETTERS = 100

AROUND_BYTES, AROUND_ITEM_BYTES = 64 * 1024, 64
"""What may stand around the items of a batch, and between each two of them: commas, blanks, names that nobody reads.
Looking for items in it takes 1.5 s of CPU a MB."""


class BatchItem(msgspec.Struct, frozen=True):
    """One body of a batch, as the caller wrote it: ``body`` is a view into the item's bytes, not a copy."""

    id: str
    body: msgspec.Raw


class _Anything(msgspec.Struct):
    pass


class _Skeleton(msgspec.Struct):
    items: list[_Anything]


class _StreamFlag(msgspec.Struct):
    stream: Any = None


class ItemReader:
    """Pieces of a batch's body in, its items out.

    Both methods raise Refusal: 413 for more than ``max_items``; 400 for anything else, naming the item and the
    field. Ids must differ: results are matched by id, and two lines with one id could not be told apart.
    """

    def __init__(self, *, max_items: int) -> None:
        self._max_items = max_items
        self._most_around_bytes = AROUND_BYTES + AROUND_ITEM_BYTES * max_items
        self._scanner = ArrayScanner("items", most=max_items, most_around_bytes=self._most_around_bytes)
        self._ids: dict[str, int] = {}

    def feed(self, piece: bytes | bytearray | memoryview) -> list[BatchItem]:
        """The items that ``piece`` completes."""
        first = self._scanner.count
        found = self._scanner.feed(piece)
        if self._scanner.count > self._max_items:
            raise Refusal(
                413,
                f"at least {self._scanner.count} items, the limit is {self._max_items} (MAX_BATCH_ITEMS); "
                "send them in several requests",
                type="too_many_items",
                param="items",
            )
        if self._scanner.is_too_much_around:
            fault = (
                f"more than {self._most_around_bytes} bytes stand around the items, or an item is no object; "
                'send {"items": [{"id": …, "body": {…}}, …]} and nothing else'
            )
            raise _malformed(None, fault)
        return [self._item(raw, first + offset) for offset, raw in enumerate(found)]

    def close(self) -> int:
        """The number of items. What stood around them must have been JSON."""
        try:
            count = len(msgspec.json.decode(self._scanner.skeleton, type=_Skeleton).items)
        except msgspec.ValidationError as problem:
            raise _malformed(*_place(str(problem))) from problem
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            # Without the byte's number: the items are not in what was parsed.
            raise _not_json(None, _BYTE_NUMBER.sub("", str(problem))) from problem
        if count != self._scanner.count:
            raise _malformed("items", "stands in the body more than once")
        return count

    def _item(self, raw: bytes, index: int) -> BatchItem:
        place = f"items[{index}]"
        try:
            item = msgspec.json.decode(raw, type=BatchItem)
        except msgspec.ValidationError as problem:
            where, fault = _place(str(problem))
            raise _malformed(f"{place}.{where}", fault) from problem
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise _not_json(place, _BYTE_NUMBER.sub(r" at byte \1 of the item", str(problem))) from problem
        if memoryview(item.body)[0] != ord("{"):
            raise _malformed(f"{place}.body", "must be a chat.completions object")
        if (first := self._ids.setdefault(item.id, index)) != index:
            raise _malformed(
                f"{place}.id", f"{_shown(item.id)} is the id of items[{first}] already; give every item its own"
            )
        # The search saves a second pass over the body; base64 cannot hold a quote.
        if b'"stream"' in raw and msgspec.json.decode(item.body, type=_StreamFlag).stream is True:
            fault = "a batch line holds a whole answer; leave stream out, or use /chat"
            raise _malformed(f"{place}.body.stream", fault)
        return item


def _place(message: str) -> tuple[str | None, str]:
    """msgspec's "what - at `$.items[2].id`" as the place and the fault."""
    found = re.fullmatch(r"(.*) - at `\$\.?(.*)`", message)
    what, where = (found[1], found[2]) if found else (message, "")
    if missing := re.fullmatch(r"Object missing required field `(.*)`", what):
        return f"{where}.{missing[1]}".lstrip("."), "is missing"
    return where or None, f"{what[0].lower()}{what[1:]}"


def _malformed(param: str | None, fault: str) -> Refusal:
    return Refusal(400, f"{param or 'the body'}: {fault}", type="invalid_request", param=param)


def _not_json(param: str | None, reason: str) -> Refusal:
    if "recursion" in reason:  # Python's words, and no fault of the grammar
        return _malformed(param, "nested too deeply; write it flatter")
    return _malformed(param, f"not JSON ({reason})")


def _shown(text: str) -> str:
    """A caller's text, as far as an error repeats it."""
    return repr(text) if len(text) <= _SHOWN_LETTERS else f"{text[:_SHOWN_LETTERS]!r}… ({len(text)} letters)"
