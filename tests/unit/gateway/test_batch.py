"""A batch taken apart, and one line put together."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from vision_bench.gateway.admission import Admission
from vision_bench.gateway.batch import BatchRun
from vision_bench.gateway.exchange import Exchange, Refusal
from vision_bench.gateway.fleet import Fleet
from vision_bench.gateway.items import BatchItem, ItemReader
from vision_bench.gateway.transport import Payload
from vision_bench.gateway.upstream import VLLMClient


class Canned:
    """Answers every body with the same bytes; a body with "bug" in it meets a bug."""

    status = 200
    headers: Mapping[str, str] = {"Content-Type": "application/json"}

    def __init__(self, answer: bytes) -> None:
        self._chunks = [b"", answer]

    async def read_some(self) -> bytes:
        return self._chunks.pop()


class CannedTransport:
    @asynccontextmanager
    async def post(self, path: str, body: Payload, headers: Mapping[str, str]) -> AsyncIterator[Canned]:
        if b"bug" in bytes(body):
            raise ZeroDivisionError("a bug of ours")
        yield Canned(b'{"choices":[]}')


def parse_items(body: bytes, *, max_items: int) -> list[BatchItem]:
    """The items of a whole body."""
    reader = ItemReader(max_items=max_items)
    found = reader.feed(body)
    assert reader.close() == len(found)
    return found


async def lines_of(request: bytes) -> tuple[list[dict[str, object]], Exchange]:
    """The lines of a batch, and what the log would say of it."""
    admission = Admission(2, acquire_timeout_seconds=5)
    client = VLLMClient(Fleet({"http://x/v1": CannedTransport()}, admission), timeout_seconds=5)
    exchange = Exchange("id", failed=0)
    lines: list[dict[str, object]] = []

    async def emit(line: bytes) -> None:
        lines.append(json.loads(line))

    async with BatchRun(client, exchange) as run:
        for item in parse_items(request, max_items=10):
            run.start(item)
        await run.emit_lines(emit)
    return lines, exchange


async def test_a_bug_of_ours_costs_one_item() -> None:
    """An exception nobody foresaw is that item's 500 line, names the id to look for, and hides its text."""
    lines, exchange = await lines_of(b'{"items":[{"id":"a","body":{"x":"bug"}},{"id":"b","body":{}}]}')
    by_id = {line["id"]: line for line in lines}
    assert by_id["a"] == {
        "id": "a",
        "status": 500,
        "elapsed_ms": 0,
        "error": "internal_error: see the gateway's log for request id id-0",
    }
    assert by_id["b"]["status"] == 200
    assert exchange.failed == 1


async def test_ids_survive_the_line() -> None:
    """Korean, quotes, an empty id and letters that end lines elsewhere come back as they were sent."""
    ids = ["클립-1", 'say "hi"\\', "", "a\u2028b\u0085c\nd", "0001_0600-0606"]
    request = json.dumps({"items": [{"id": one, "body": {}} for one in ids]}).encode()
    lines, exchange = await lines_of(request)
    assert sorted(str(line["id"]) for line in lines) == sorted(ids)
    assert exchange.failed == 0


def test_bodies_are_views_not_copies() -> None:
    """An item's body is the caller's own bytes, odd spacing included, without what stands around it."""
    (item,) = parse_items(b'{"items":[{"id":"a","body":  {"x" : 1e2 }  }]}', max_items=1)
    assert bytes(memoryview(item.body)) == b'{"x" : 1e2 }'


def test_the_limit_is_the_last_number_allowed() -> None:
    """max_items items pass, one more is a 413 that says both numbers."""
    request = json.dumps({"items": [{"id": str(n), "body": {}} for n in range(3)]}).encode()
    assert len(parse_items(request, max_items=3)) == 3
    with pytest.raises(Refusal, match=r"3 items, the limit is 2 \(MAX_BATCH_ITEMS\)") as caught:
        parse_items(request, max_items=2)
    assert caught.value.status == 413


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (b'{"items":[{"id":"a","body":{}},{"id":"a","body":{}}]}', "items[1].id: 'a' is the id of items[0] already"),
        (b'{"items":[{"id":1,"body":{}}]}', "items[0].id: expected `str`, got `int`"),
        (b'{"items":[{"id":"a"}]}', "items[0].body: is missing"),
        (b"{}", "items: is missing"),
        (b"nonsense", "the body: not JSON"),
        (b'{"x":' + b"[" * 100_000, "the body: more than 66176 bytes stand around the items"),
        (b'{"items":[{"id":"a","body":{}}]} x', "the body: not JSON (JSON is malformed: trailing characters)"),
        (
            b'{"items":[{"id":"a","body":{}},{"id":"b","body":{"x":NaN}}]}',
            "items[1]: not JSON (JSON is malformed: invalid character at byte 22 of the item)",
        ),
        (b'{"items":[{"id":"\\ud800","body":{}}]}', "items[0]: not JSON"),
        (b'{"items":[{"id":"a","body":{"x":' + b"[" * 5000 + b"]" * 5000 + b"}}]}", "items[0]: nested too deeply"),
        (b'{"x":' + b"[" * 5000 + b"]" * 5000 + b',"items":[]}', "the body: nested too deeply"),
    ],
)
def test_the_message_names_the_place_and_the_fault(request_: bytes, message: str) -> None:
    """One sentence that a caller can act on."""
    with pytest.raises(Refusal) as caught:
        parse_items(request_, max_items=10)
    assert str(caught.value).startswith(message)


def test_an_error_repeats_no_more_of_an_id_than_its_beginning() -> None:
    """Else a refusal is as long as what it refuses."""
    item = b'{"id":"%s","body":{}}' % (b"x" * 1_000_000)
    with pytest.raises(Refusal, match=r"items\[1\].id: 'x{100}'… \(1000000 letters\) is the id of items\[0\]"):
        parse_items(b'{"items":[%s,%s]}' % (item, item), max_items=10)
