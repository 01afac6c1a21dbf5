"""Bodies as buffers: what is shared, what differs, and when variants run out."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from vision_bench.bench.chat.bodies import MEDIA, NONCE, Bodies, Item, make_template, shared_buffers
from vision_bench.errors import InvalidRequest

CLIP = bytes(range(256)) * 64  # 16 kB


def vary(clip: bytes, number: int) -> bytes:
    """A few bytes near the end differ; there are three variants."""
    return clip[:-8] + min(number, 3).to_bytes(8, "big")


def video_bodies(count: int = 2, **options: Any) -> Bodies:
    uri = f"data:video/mp4;base64,{MEDIA}"
    templates = [make_template(f"{n}.mp4", {"n": n, "url": uri, "text": "?"}, clip=CLIP) for n in range(count)]
    return Bodies(templates, vary=vary, **options)


def sent(item: Item) -> Any:
    return json.loads(b"".join(item.buffers))


def clip_of(item: Item) -> bytes:
    return base64.b64decode(sent(item)["url"].partition(",")[2])


def test_every_request_gets_a_variant_of_its_own() -> None:
    """Clips in turn, each time the next variant, never the clip itself; hashes all differ."""
    bodies = video_bodies()
    bodies.ready(0, 6)
    items = [bodies.item(ordinal) for ordinal in range(6)]
    assert [item.name for item in items] == ["0.mp4", "1.mp4"] * 3
    assert [clip_of(item) for item in items] == [vary(CLIP, number) for number in (1, 1, 2, 2, 3, 3)]
    assert len({item.sha256 for item in items}) == 6
    assert all(sum(map(len, item.buffers)) == item.size_bytes for item in items)


def test_a_variant_shares_what_stayed_the_same() -> None:
    """Of 22 kB of base64 only the last block is a variant's own."""
    bodies = video_bodies(1)
    bodies.ready(0, 3)
    one, other = bodies.item(0), bodies.item(1)
    own = [len(buffer) for buffer in other.buffers if isinstance(buffer, bytes)]
    assert sum(own) < 6000 < other.size_bytes
    views = [[buffer.obj for buffer in item.buffers if isinstance(buffer, memoryview)] for item in (one, other)]
    assert views[0][0] is views[1][0]


def test_a_clip_without_more_variants_is_named() -> None:
    """Before the step begins, with what can be done."""
    bodies = video_bodies()
    with pytest.raises(InvalidRequest, match=r"0\.mp4 has 3 variants"):
        bodies.ready(0, 7)
    with pytest.raises(InvalidRequest, match="has 3 variants"):
        bodies.ready(6, 1)


def test_what_an_earlier_step_needed_is_let_go() -> None:
    """Variants of the step at hand alone are in memory."""
    bodies = video_bodies()
    bodies.ready(0, 2)
    bodies.ready(2, 2)
    assert clip_of(bodies.item(2)) == vary(CLIP, 2)
    with pytest.raises(KeyError):
        bodies.item(0)


def test_a_batch_counts_its_items() -> None:
    """Two requests of three items are six variants."""
    bodies = video_bodies(2, batch_size=3)
    bodies.ready(0, 2)
    items = sent(bodies.item(0))["items"] + sent(bodies.item(1))["items"]
    assert [item["body"]["n"] for item in items] == [0, 1, 0, 1, 0, 1]
    assert len({item["body"]["url"] for item in items}) == 3


def test_bodies_without_variants_need_no_making_ready() -> None:
    """Nothing to do, and no count is asked for."""
    plain = Bodies([make_template("text", {"text": f"[{NONCE}]"})])
    plain.ready(0, 10**9)
    assert (plain.need_a_count, video_bodies().need_a_count, plain.count) == (False, True, 1)


@pytest.mark.parametrize(
    ("base", "other"),
    [
        (b"", b""),
        (b"a" * 10_000, b"a" * 10_000),
        (b"a" * 10_000, b"b" * 10_000),
        (b"a" * 10_000, b"a" * 5_000),
        (b"a" * 5_000, b"a" * 10_000),
        (b"a" * 20_000, b"a" * 8_192 + b"b" + b"a" * 11_000),
        (b"", b"abc"),
    ],
)
def test_shared_buffers_are_the_bytes_they_stand_for(base: bytes, other: bytes) -> None:
    """Whatever is equal, longer or shorter."""
    assert b"".join(shared_buffers(base, other)) == other
