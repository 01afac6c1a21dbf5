"""An answer on its way back: its receipt is put into the whole answer, or into the last event of a stream.

Events with tokens go on at once. Only one that may be the last, for it ends a choice or has none, is held until the
next one shows whether it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from vision_bench.errors import BrokenStream
from vision_bench.wire.shapes import parse_json
from vision_bench.wire.sse import DONE, EventParser, encode_event

Json = dict[str, Any]


def with_receipt(answer: bytes, receipt: Callable[[Json], Json]) -> bytes:
    """A whole answer with the receipt's keys; as it is when it is no object.

    Args:
        receipt: the keys to add, given the answer's ``usage`` and ``metrics``, as far as it has them.
    """
    try:
        told = parse_json(answer)
    except ValueError:
        return answer
    if not isinstance(told, dict):
        return answer
    return _encoded({**told, **receipt(_accounts(told))}).encode()


EVENT_LIMIT_BYTES = 16 * 2**20
"""The longest event that is waited for; a token takes less than a thousandth of it."""


class ReceiptStream:
    """The events of one answer.

    Args:
        receipt: the keys to add to the last event, given the ``usage`` and ``metrics`` that were told.
        on_token: called when text, a tool call or reasoning passes.
    """

    def __init__(self, receipt: Callable[[Json], Json], *, on_token: Callable[[], None]) -> None:
        self._receipt = receipt
        self._on_token = on_token
        self._parser = EventParser()
        self._unended_bytes = 0
        self._held: Json | None = None
        self._accounts: Json = {}

    def feed(self, data: bytes) -> bytes:
        """What goes on of ``data`` and of what was held before.

        Raises:
            BrokenStream: an event without an end.
        """
        out = []
        events = self._parser.feed(data)
        self._unended_bytes = 0 if events else self._unended_bytes + len(data)
        if self._unended_bytes > EVENT_LIMIT_BYTES:
            self._parser, self._unended_bytes = EventParser(), 0
            raise BrokenStream(f"an event of the answer is longer than {EVENT_LIMIT_BYTES} bytes")
        for event in events:
            if event.data == DONE:
                out += [self._last(), encode_event(DONE)]
            else:
                out.append(self._passed(event.data, event.event))
        return b"".join(out)

    def close(self) -> bytes:
        """What is held when the stream breaks off: without a receipt, for it was not the last event."""
        held, self._held = self._held, None
        rest = b"".join(encode_event(event.data) for event in self._parser.close())
        return (b"" if held is None else encode_event(_encoded(held))) + rest

    def _passed(self, data: str, name: str) -> bytes:
        before = b"" if self._held is None else encode_event(_encoded(self._held))
        self._held = None
        try:
            told = parse_json(data)
        except ValueError:
            told = None
        if not isinstance(told, dict) or "error" in told:
            return before + encode_event(data, event=None if name == "message" else name)
        self._accounts |= _accounts(told)
        if _has_token(told):
            self._on_token()
        if _may_be_last(told):
            self._held = told
            return before
        return before + encode_event(data)

    def _last(self) -> bytes:
        held, self._held = self._held, None
        return encode_event(_encoded({**(held or {"choices": []}), **self._receipt(self._accounts)}))


def _accounts(told: Json) -> Json:
    return {name: told[name] for name in ("usage", "metrics") if isinstance(told.get(name), dict)}


def _choices(told: Json) -> list[Json]:
    choices = told.get("choices")
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []


def _has_token(told: Json) -> bool:
    deltas = [choice.get("delta") for choice in _choices(told)]
    names = ("content", "reasoning", "reasoning_content", "tool_calls")
    return any(isinstance(delta, dict) and any(delta.get(name) for name in names) for delta in deltas)


def _may_be_last(told: Json) -> bool:
    choices = _choices(told)
    return not choices or any(choice.get("finish_reason") is not None for choice in choices)


def _encoded(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))
