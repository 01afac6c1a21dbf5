"""What every request of the soak does, as a pure function of the seed.

A plan is a list of conversations, one connection each. Every request carries its own marker in its body and in
``X-Request-Id``; the stub upstream writes it into the answer.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from benchmarks.soak import faults

T = TypeVar("T")
SMALL_BYTES, CLIP_BYTES = 300, 1_600_000
MAX_ITEMS = 16
MAX_BODY_BYTES = 4 * 1024 * 1024

# Shares of what is drawn. Faults that hold a permit for the whole of a call's time limit are rare: they set the pace.
_KINDS = {"chat": 60, "stream": 19, "batch": 14, "refused": 5, "healthz": 2}
_PLAIN = {name: 1 for name in faults.PLAIN if name not in faults.SILENT and name != "hold"} | {"ok": 16, "drip": 2}
_STREAM = {name: 2 for name in faults.STREAM if name not in faults.SILENT} | {"stream": 14}
_SILENT_SHARE, _SILENT_STREAM_SHARE = 0.008, 0.02
_SIZES = {SMALL_BYTES: 70, 20_000: 18, 200_000: 7, CLIP_BYTES: 5}
_ITEM_SIZES = {SMALL_BYTES: 70, 20_000: 20, 200_000: 10}
_PATHS = {"/chat": 3, "/v1/chat/completions": 1}

LEAVES = {
    "in_head": 2,
    "in_upload": 3,
    "at_once": 3,
    "waiting": 4,
    "before_first_byte": 4,
    "in_body": 4,
    "after_last_byte": 3,
    "half_closed": 1,
    "vanishes": 1,
    "vanishes_in_upload": 1,
    "never_reads": 1,
}
"""How a caller leaves. The last three keep their connection open to the end of the pass and say nothing more."""

# What the upstream does for a caller who leaves; "hold" for the rest: it waits for the end of the connection.
_IN_UPLOAD = {"in_upload", "vanishes_in_upload"}
_STAYERS = {"after_last_byte", "half_closed"}
_UPSTREAM_OF_LEAVER = {
    "after_last_byte": "stream",
    "half_closed": "stream",
    "in_body": "hold_in_stream",
    "vanishes": "silence",
    "never_reads": "flood",
}
_BATCH_OF_LEAVER = {"after_last_byte": "ok", "half_closed": "ok", "vanishes": "silence", "never_reads": "large"}

# A caller who is alone, and whose body goes on to vLLM while it comes.
_LONE_SHARE = 0.05
_LONE_FAULTS = {"ok": 6, "early": 2, "reset_in_upload": 4, "reset_before": 1, "stream": 2, "http_500": 1, "closes": 1}
_LONE_LEAVES = {"": 8, "in_upload": 5, "at_once": 2, "before_first_byte": 1}

_LEAVES_SHARE = 0.2
_SLOW_READER_SHARE = 0.03
_CHUNKED_SHARE = 0.12


@dataclass(frozen=True, slots=True)
class Call:
    """One call to the upstream: what it is called, what the upstream does, how big its body is."""

    marker: str
    fault: str
    size_bytes: int = SMALL_BYTES
    delay_ms: int = 0
    is_streamed: bool = False

    def body(self) -> bytes:
        """The chat body. What the stub has to know stands in its first bytes."""
        head = f'{{"soak":"{self.marker} {self.fault} {self.delay_ms} ","model":"qwen","stream":'
        head += f'{"true" if self.is_streamed else "false"},"messages":[{{"role":"user","content":"'
        tail = '"}]}'
        return f"{head}{'A' * max(0, self.size_bytes - len(head) - len(tail))}{tail}".encode()


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of a caller.

    Attributes:
        kind: chat, stream, batch, refused or healthz.
        calls: one; of a batch, one an item; of the last two kinds, none.
        refused: of kind ``refused``: which of ``faults.REFUSED``.
        is_chunked: the body is sent in chunks, without a length.
        leaves: how the caller leaves; "" stays to the end.
        leaves_after_ms: for those that leave after a while.
        reads_slowly: takes a little, waits, takes a little.
        pauses: stands still for a moment before the end of the body.
    """

    marker: str
    kind: str
    path: str
    calls: tuple[Call, ...] = ()
    refused: str = ""
    is_chunked: bool = False
    leaves: str = ""
    leaves_after_ms: int = 0
    is_reset: bool = False
    reads_slowly: bool = False
    pauses: bool = False

    def expected(self) -> faults.Outcomes:
        """What the caller may see of it."""
        if self.leaves and self.leaves != "after_last_byte":
            return frozenset({"left"})
        if self.kind == "refused":
            return faults.REFUSED[self.refused]
        if self.kind in {"healthz", "batch"}:
            return frozenset({"ok"})
        table: Mapping[str, faults.Outcomes] = faults.STREAM if self.kind == "stream" else faults.PLAIN
        return table[self.calls[0].fault]

    def payload(self) -> bytes:
        """The request's body."""
        if self.kind == "refused":
            return _refused_body(self.refused, self.marker)
        if self.kind != "batch":
            return self.calls[0].body() if self.calls else b""
        items = (b'{"id":"%s","body":%s}' % (call.marker.encode(), call.body()) for call in self.calls)
        return b'{"items":[%s]}' % b",".join(items)

    def checksums(self) -> dict[str, int]:
        """CRC-32 of every call's body by its marker: what the upstream must have got."""
        return {call.marker: zlib.crc32(call.body()) for call in self.calls}


@dataclass(frozen=True, slots=True)
class Conversation:
    """Requests over one connection, one after the other or, ``is_pipelined``, all sent at once."""

    asks: tuple[Ask, ...]
    is_pipelined: bool = False


@dataclass(frozen=True, slots=True)
class Chapter:
    """Conversations that run side by side, some at a time.

    Attributes:
        title: ``mixed``; ``lone``: one after the other, of large bodies; ``restart``: the upstream is killed and
            started in the middle; ``crowd``: all at once, more than can be served in time.
    """

    title: str
    conversations: tuple[Conversation, ...]

    def asks(self) -> list[Ask]:
        """All requests."""
        return [ask for conversation in self.conversations for ask in conversation.asks]


def plan_pass(*, seed: int, requests: int, crowd: int = 0, name: str = "") -> list[Chapter]:
    """The chapters of one pass of ``requests`` requests, of which ``crowd`` come at once in a chapter of their own.

    The same arguments give the same plan. ``name`` begins every marker.
    """
    draw = random.Random(seed)
    author = _Author(draw, name)
    lone = int(requests * _LONE_SHARE) // 2 * 2
    mixed = max(0, requests - crowd - lone)
    first, second = mixed * 2 // 5, mixed // 5
    chapters = [
        Chapter("lone", author.lone(lone)),  # the first: those who vanish in the others are still there, to the end
        Chapter("mixed", author.conversations(first)),
        Chapter("restart", author.conversations(second)),
    ]
    if crowd:
        chapters.append(Chapter("crowd", author.crowd(crowd)))
    return [*chapters, Chapter("mixed", author.conversations(mixed - first - second))]


class _Author:
    def __init__(self, draw: random.Random, name: str) -> None:
        self._draw = draw
        self._name = name
        self._count = 0

    def conversations(self, requests: int) -> tuple[Conversation, ...]:
        found: list[Conversation] = []
        left = requests
        while left > 0:
            conversation = self._conversation(left)
            found.append(conversation)
            left -= len(conversation.asks)
        return tuple(found)

    def lone(self, requests: int) -> tuple[Conversation, ...]:
        """Pairs: a good call, which leaves a connection to the upstream ready, and a large body over the same one."""
        return tuple(Conversation((self._good_ask(), self._lone_ask())) for _ in range(requests // 2))

    def _good_ask(self) -> Ask:
        marker = self._marker()
        return Ask(marker, "chat", "/chat", (Call(marker, "ok"),))

    def _lone_ask(self) -> Ask:
        marker = self._marker()
        leaves = _choose(self._draw, _LONE_LEAVES)
        fault = "hold" if leaves else _choose(self._draw, _LONE_FAULTS)
        return Ask(
            marker,
            "chat",
            self._path(),
            (Call(marker, fault, CLIP_BYTES, self._draw.randrange(20)),),
            leaves=leaves,
            leaves_after_ms=self._draw.randint(10, 100),
            is_reset=self._draw.random() < 0.5,
            pauses=not leaves and self._draw.random() < 0.7,
        )

    def crowd(self, requests: int) -> tuple[Conversation, ...]:
        return tuple(
            Conversation((Ask(marker, "chat", "/chat", (Call(marker, "silence"),)),))
            for marker in (self._marker() for _ in range(requests))
        )

    def _conversation(self, most: int) -> Conversation:
        asks = [self._ask()]
        # Only the last request of a connection may end it. Those in front of it keep it alive whatever happens.
        while len(asks) < most and self._draw.random() < 0.4 and len(asks) < 5:
            asks.insert(0, self._calm_ask())
        is_pipelined = len(asks) > 1 and self._draw.random() < 0.5
        last = asks[-1]
        if is_pipelined and last.leaves in {"at_once", "waiting", "before_first_byte"}:
            asks = [*(replace(ask, leaves=last.leaves) for ask in asks[:-1]), last]
        return Conversation(tuple(asks), is_pipelined)

    def _calm_ask(self) -> Ask:
        marker = self._marker()
        if self._draw.random() < 0.1:
            return Ask(marker, "healthz", "/healthz")
        fault = _choose(self._draw, {"ok": 8, "http_404": 1, "reset_before": 1, "http_500": 1, "stream": 1})
        call = Call(marker, fault, self._size(), self._draw.randrange(20))
        return Ask(marker, "chat", "/chat", (call,), is_chunked=self._draw.random() < _CHUNKED_SHARE)

    def _ask(self) -> Ask:
        marker = self._marker()
        kind = _choose(self._draw, _KINDS)
        if kind == "healthz":
            return Ask(marker, kind, "/healthz")
        if kind == "refused":
            return self._refused(marker)
        if self._draw.random() < _LEAVES_SHARE:
            return self._leaver(marker, kind)
        is_chunked = self._draw.random() < _CHUNKED_SHARE
        slow = self._draw.random() < _SLOW_READER_SHARE
        if kind == "batch":
            count = self._draw.randint(1, 8)
            calls = tuple(self._call(f"{marker}.{n}", faults.ITEM, may_be_clip=n == 0) for n in range(count))
            return Ask(marker, kind, "/chat/batch", calls, is_chunked=is_chunked, reads_slowly=slow)
        call = self._call(marker, faults.STREAM if kind == "stream" else faults.PLAIN)
        if slow:
            call = Call(marker, "long_stream" if kind == "stream" else "large", is_streamed=kind == "stream")
        return Ask(marker, kind, self._path(), (call,), is_chunked=is_chunked, reads_slowly=slow)

    def _call(self, marker: str, table: Mapping[str, faults.Outcomes], *, may_be_clip: bool = True) -> Call:
        silent = sorted(faults.SILENT & table.keys())
        if self._draw.random() < (_SILENT_STREAM_SHARE if table is faults.STREAM else _SILENT_SHARE):
            fault = self._draw.choice(silent)
        else:
            fault = _choose(self._draw, _STREAM if table is faults.STREAM else _PLAIN)
        # An upstream that answers early, or stops reading, matters only while there is something left to read.
        size = CLIP_BYTES if fault in faults.UNREAD and may_be_clip else self._size(may_be_clip=may_be_clip)
        return Call(marker, fault, size, self._draw.randrange(20), is_streamed=table is faults.STREAM)

    def _leaver(self, marker: str, kind: str) -> Ask:
        how = _choose(self._draw, LEAVES)
        size = CLIP_BYTES if how in _IN_UPLOAD and self._draw.random() < 0.5 else self._size()
        if kind == "batch":
            count = self._draw.randint(2, 8)
            names = [_BATCH_OF_LEAVER.get(how, "hold")] * count
            if how == "in_body":
                names[0] = "ok"  # the line after which the caller leaves
            calls = tuple(
                Call(f"{marker}.{n}", fault, size if n == 0 else SMALL_BYTES) for n, fault in enumerate(names)
            )
        else:
            if how in {"in_body", "never_reads"}:
                kind = "stream"
            fault = "ok" if kind == "chat" and how in _STAYERS else _UPSTREAM_OF_LEAVER.get(how, "hold")
            calls = (Call(marker, fault, size, is_streamed=kind == "stream"),)
        return Ask(
            marker,
            kind,
            "/chat/batch" if kind == "batch" else self._path(),
            calls,
            is_chunked=how != "in_head" and self._draw.random() < _CHUNKED_SHARE,
            leaves=how,
            leaves_after_ms=self._draw.randint(0, 60) if how == "waiting" else self._draw.randint(40, 150),
            is_reset=self._draw.random() < 0.5,
        )

    def _refused(self, marker: str) -> Ask:
        name = self._draw.choice(sorted(faults.REFUSED))
        paths = {"not_found": "/nope", "wrong_method": "/chat", "no_http": "/chat", "stands_still": "/chat"}
        path = paths.get(name, "/chat/batch")
        return Ask(marker, "refused", path, refused=name, is_chunked=name == "too_large_chunked")

    def _path(self) -> str:
        return _choose(self._draw, _PATHS)

    def _size(self, *, may_be_clip: bool = True) -> int:
        return _choose(self._draw, _SIZES if may_be_clip else _ITEM_SIZES)

    def _marker(self) -> str:
        self._count += 1
        return f"{self._name}{self._count:05d}"


def _choose(draw: random.Random, shares: Mapping[T, int]) -> T:
    names: Sequence[T] = list(shares)
    return draw.choices(names, weights=list(shares.values()))[0]


def _refused_body(name: str, marker: str) -> bytes:
    if name == "malformed":
        return b'{"items":[{"id":"%s","body":{}},{"id":3,"body":{}}]}' % marker.encode()
    if name == "same_ids":
        return b'{"items":[{"id":"%s","body":{}},{"id":"%s","body":{}}]}' % (marker.encode(), marker.encode())
    if name == "too_many":
        items = [{"id": f"{marker}.{n}", "body": {}} for n in range(MAX_ITEMS + 1)]
        return json.dumps({"items": items}).encode()
    if name in {"too_large", "too_large_chunked"}:
        return b'{"items":[{"id":"%s","body":{"clip":"%s"}}]}' % (marker.encode(), b"A" * MAX_BODY_BYTES)
    return b"A" * 1000 if name == "stands_still" else b""
