"""Receipts put into answers, and into the last event of streams."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vision_bench.errors import BrokenStream
from vision_bench.live.answers import EVENT_LIMIT_BYTES, ReceiptStream, with_receipt

RECEIPT = {"vision_bench": {"frames": []}}


def _sse(*values: Any) -> bytes:
    return b"".join(b"data: " + (v if isinstance(v, bytes) else json.dumps(v).encode()) + b"\n\n" for v in values)


def _delta(text: str | None, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}]}


def _stream(seen: list[Any]) -> ReceiptStream:
    def receipt(accounts: Any) -> dict[str, Any]:
        seen.append(dict(accounts))
        return dict(RECEIPT)

    return ReceiptStream(receipt, on_token=lambda: seen.append("token"))


def _values(data: bytes) -> list[Any]:
    return [json.loads(line[6:]) for line in data.decode().split("\n\n") if line.startswith("data: {")]


def test_a_whole_answer_gets_the_keys() -> None:
    """All of the answer stays; what is no object passes as it is."""
    told = json.loads(with_receipt(b'{"id": "x", "usage": {"a": 1}, "metrics": null}', lambda told: {"seen": told}))
    assert told == {"id": "x", "usage": {"a": 1}, "metrics": None, "seen": {"usage": {"a": 1}}}
    for odd in (b"", b"text", b"[1]"):
        assert with_receipt(odd, lambda told: {"seen": told}) == odd


def test_only_the_last_event_gets_them() -> None:
    """Without usage it is the one that ends the choice, with usage that one; tokens pass in the moment they come."""
    usage = {"choices": [], "usage": {"prompt_tokens": 3}, "metrics": {"queue_time_ms": 1}}
    for last in ([], [usage]):
        seen: list[Any] = []
        stream = _stream(seen)
        assert stream.feed(_sse(_delta("a"))) == _sse(_delta("a"))
        assert stream.feed(_sse(_delta("b", "stop"))) == b""
        assert seen == ["token", "token"]
        out = stream.feed(_sse(*last, b"[DONE]"))
        values = _values(out)
        assert values[-1] == {**(usage if last else _delta("b", "stop")), **RECEIPT}
        assert out.endswith(b"data: [DONE]\n\n")
        assert seen[-1] == ({key: usage[key] for key in ("usage", "metrics")} if last else {})
        assert stream.close() == b""


def test_two_choices_that_end_one_after_the_other() -> None:
    """The end of the first is held until more comes, then passes; order stays."""
    stream = _stream([])
    parts = _sse(_delta("a", "stop")), _sse(_delta("b")), _sse(_delta(None, "stop"), b"[DONE]")
    out = b"".join(stream.feed(part) for part in parts)
    assert _values(out) == [_delta("a", "stop"), _delta("b"), {**_delta(None, "stop"), **RECEIPT}]


def test_a_stream_of_nothing_but_its_end_still_has_a_receipt() -> None:
    """An event of its own holds it."""
    assert _values(_stream([]).feed(_sse(b"[DONE]"))) == [{"choices": [], **RECEIPT}]


def test_what_breaks_off_has_none() -> None:
    """What was held passes as it was, then what the gateway says of the failure; nothing looks like a whole answer."""
    stream = _stream([])
    out = stream.feed(_sse(_delta("a", "stop")))
    out += stream.feed(b'\n\ndata: {"error": {"message": "broke"}}\n\n') + stream.close()
    assert _values(out) == [_delta("a", "stop"), {"error": {"message": "broke"}}]
    assert _values(_stream([]).feed(_sse(_delta("a", "stop")))) == []


def test_bytes_may_come_in_any_pieces() -> None:
    """Fed byte by byte the outcome is the same, also for events that are no JSON."""
    data = _sse(_delta("가", None), b"not json", _delta("b", "stop"), {"choices": [], "usage": {}}, b"[DONE]")
    whole, stream = _stream([]).feed(data), _stream([])
    assert b"".join(stream.feed(data[i : i + 1]) for i in range(len(data))) == whole
    assert b"data: not json\n\n" in whole


def test_an_event_without_end_breaks_the_answer() -> None:
    """It fills no memory; what is told behind it, such as the gateway's own error, is an event of its own."""
    stream = _stream([])
    line, count = b"data: " + b"x" * 2**20, EVENT_LIMIT_BYTES // 2**20
    for _ in range(count - 1):
        assert stream.feed(line) == b""
    with pytest.raises(BrokenStream, match="longer than"):
        for _ in range(2):
            stream.feed(line)
    assert _values(stream.feed(b"\n\n" + _sse({"error": "broke"}))) == [{"error": "broke"}]
