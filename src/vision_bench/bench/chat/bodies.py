"""The bytes of a run's requests: made before the clock starts, shared between requests, the same for the same ordinal.

A body is a few shared buffers and, between them, the bytes that differ from request to request: a nonce, a thread's
name, a variant of the clip. A variant shares with its clip whatever stayed the same, in blocks.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from vision_bench.errors import InvalidRequest

Json = dict[str, Any]
Buffer = bytes | memoryview

NONCE = "\ue000nonce\ue000"  # of the private use area: no prompt holds it by accident, and JSON does not escape it
THREAD = "\ue000thread\ue000"
MEDIA = "\ue000media\ue000"
STREAM = "\ue000stream\ue000"
_SLOT = re.compile(f"({NONCE}|{THREAD}|{MEDIA}|{STREAM})".encode())
_BLOCK_BYTES = 4096

Vary = Callable[[bytes, int], bytes]
"""A clip's bytes and a number from 1 on to a variant of the clip; where there are no more, to the last one again."""


@dataclass(frozen=True, slots=True)
class Item:
    """What one request sends. ``sha256`` is equal for equal bodies; ``batch_size`` None is a single chat."""

    name: str
    buffers: tuple[Buffer, ...]
    size_bytes: int
    sha256: str
    thread: str | None = None
    batch_size: int | None = None


class Encoded(NamedTuple):
    """An item that was encoded inside the clock: media chosen and read, encoded, body written, monotonic ns."""

    item: Item
    sel_ns: int
    enc_ns: int
    ser_ns: int


@dataclass(frozen=True, slots=True)
class Template:
    """A body cut at the places that differ: static bytes and slots in turn, beginning and ending with static ones.

    Attributes:
        digest: of the body with its slots empty, and of the clip behind a media slot.
        clip: the bytes of which the media slot gets variants; None without one.
        encode: the same body made anew, for a workload that encodes inside the clock; None otherwise.
    """

    name: str
    pieces: tuple[bytes, ...]
    digest: bytes
    clip: bytes | None = None
    encode: Callable[[], FreshBody] | None = None


class FreshBody(NamedTuple):
    """A body encoded just now, and when its parts were ready."""

    data: bytes
    sel_ns: int
    enc_ns: int


def encode_json(body: Json) -> bytes:
    """A body as it goes on the wire.

    Raises:
        InvalidRequest: it holds what JSON does not know.
    """
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as problem:  # TOML knows dates and infinities
        raise InvalidRequest(f"the body cannot be written as JSON: {problem}; look at extra") from problem


def make_template(
    name: str, body: Json, *, clip: bytes | None = None, encode: Callable[[], FreshBody] | None = None
) -> Template:
    """The template of a body whose slots are written as NONCE, THREAD, MEDIA and STREAM."""
    encoded = encode_json(body)
    digest = hashlib.sha256(encoded + (clip or b"")).digest()
    return Template(name, tuple(_SLOT.split(encoded)), digest, clip, encode)


class _Variant(NamedTuple):
    buffers: tuple[Buffer, ...]
    digest: bytes


class Bodies:
    """The bodies of a run.

    Args:
        templates: one a clip, used in turn.
        salt: what makes this run's nonces its own; the run's seed.
        batch_size: bodies in one request; None sends single chats.
        vary: makes the variants of clips whose template has a media slot.

    Attributes:
        stream: the id of the live stream that is asked about, known once its film plays; in no digest.
    """

    def __init__(
        self,
        templates: Sequence[Template],
        *,
        threads: int = 0,
        salt: str = "",
        batch_size: int | None = None,
        vary: Vary | None = None,
    ) -> None:
        self._templates = templates
        self._threads = threads
        self._salt = salt
        self._batch_size = batch_size
        self._vary = vary
        self.stream = ""
        self._bases = [_base64(template.clip) if template.clip and vary else b"" for template in templates]
        self._variants: dict[tuple[int, int], _Variant] = {}

    @property
    def count(self) -> int:
        """Different clips or texts."""
        return len(self._templates)

    @property
    def need_a_count(self) -> bool:
        """Whether ``ready`` must know how many requests are coming."""
        return self._vary is not None

    @property
    def are_encoded_inside(self) -> bool:
        """Whether ``encode`` is to be called inside the clock, instead of ``item``."""
        return self._templates[0].encode is not None

    def ready(self, first: int, count: int) -> None:
        """Make what the requests with the ordinals from ``first`` on need; what was made for others is let go.

        Raises:
            InvalidRequest: a clip has no more variants.
        """
        if self._vary is None:
            return
        size = self._batch_size or 1
        places = [self._place(place) for place in range(first * size, (first + count) * size)]
        earlier, self._variants = self._variants, {}
        for place in places:
            self._variants[place] = earlier.get(place) or self._make_variant(*place)

    def item(self, ordinal: int) -> Item:
        """What the request with this place in the run sends."""
        if self._batch_size is None:
            return self._single(ordinal)
        parts = [self._single(ordinal * self._batch_size + place) for place in range(self._batch_size)]
        buffers: list[Buffer] = [b'{"items":[']
        for place, part in enumerate(parts):
            buffers += [b'%s{"id":"%d","body":' % (b"," if place else b"", place), *part.buffers, b"}"]
        buffers.append(b"]}")
        digest = hashlib.sha256("".join(part.sha256 for part in parts).encode()).hexdigest()[:16]
        name = parts[0].name if len(parts) == 1 else f"{parts[0].name} and {len(parts) - 1} more"
        return Item(name, tuple(buffers), sum(map(len, buffers)), digest, batch_size=self._batch_size)

    def encode(self, ordinal: int) -> Encoded:
        """As ``item``, with the media read and encoded now. May run in a thread."""
        template = self._templates[ordinal % len(self._templates)]
        if template.encode is None:
            raise ValueError("this workload is encoded before the clock starts")
        fresh = template.encode()
        item = self._fill(template, tuple(_SLOT.split(fresh.data)), ordinal)
        return Encoded(item, fresh.sel_ns, fresh.enc_ns, time.monotonic_ns())

    def _single(self, ordinal: int) -> Item:
        template = self._templates[ordinal % len(self._templates)]
        return self._fill(template, template.pieces, ordinal)

    def _fill(self, template: Template, pieces: tuple[bytes, ...], ordinal: int) -> Item:
        """The pieces with their slots filled."""
        thread = f"bench-{ordinal % self._threads}" if self._threads else None
        if len(pieces) == 1:
            return Item(template.name, pieces, len(pieces[0]), template.digest.hex()[:16])
        variant = self._variants[self._place(ordinal)] if template.clip and self._vary else None
        nonce = hashlib.sha256(f"{self._salt}/{ordinal}".encode()).hexdigest()[:12]
        words = {NONCE.encode(): nonce.encode(), THREAD.encode(): (thread or "").encode()}
        slots: Mapping[bytes, tuple[Buffer, ...]] = {
            **{slot: (word,) for slot, word in words.items()},
            STREAM.encode(): (self.stream.encode(),),
            **({MEDIA.encode(): variant.buffers} if variant is not None else {}),
        }
        buffers = tuple(buffer for piece in pieces for buffer in slots.get(piece, (piece,)))
        told = [words[piece] for piece in pieces if piece in words] + ([variant.digest] if variant is not None else [])
        if STREAM.encode() in pieces:  # what is seen differs each time, so no two questions are the same body
            told.append(str(ordinal).encode())
        digest = hashlib.sha256(template.digest + b"\0".join(told)).hexdigest()[:16]
        return Item(template.name, buffers, sum(map(len, buffers)), digest, thread)

    def _place(self, ordinal: int) -> tuple[int, int]:
        """Template and number of the variant; 0, the clip itself, is never sent."""
        return ordinal % len(self._templates), 1 + ordinal // len(self._templates)

    def _make_variant(self, index: int, number: int) -> _Variant:
        template = self._templates[index]
        assert template.clip is not None and self._vary is not None  # noqa: S101 - asked for by the caller
        data = self._vary(template.clip, number)
        digest = hashlib.sha256(data).digest()
        before = self._variants.get((index, number - 1))
        if digest == (before.digest if before else hashlib.sha256(self._vary(template.clip, number - 1)).digest()):
            raise InvalidRequest(
                f"{template.name} has {number - 1} variants, and this run wants more; give more or longer clips, ask "
                'fewer --requests, or send repeats (cache = "repeat")'
            )
        return _Variant(shared_buffers(self._bases[index], _base64(data)), digest)


def shared_buffers(base: bytes, other: bytes) -> tuple[Buffer, ...]:
    """``other``: views of ``base`` where both hold the same bytes in the same place, bytes of its own elsewhere."""
    view = memoryview(base)
    buffers: list[Buffer] = []
    start, is_shared = 0, False
    for at in [*range(0, len(other), _BLOCK_BYTES), len(other)]:
        end = at + _BLOCK_BYTES
        is_same = at < len(other) and base[at:end] == other[at:end] and end <= len(other)
        if is_same != is_shared or at == len(other):
            if at > start:
                buffers.append(view[start:at] if is_shared else other[start:at])
            start, is_shared = at, is_same
    return tuple(buffers)


def _base64(data: bytes) -> bytes:
    return base64.b64encode(data)
