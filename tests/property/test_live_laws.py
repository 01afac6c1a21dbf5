"""Laws of what comes from outside into live streams: whatever it is, it is read or refused, and nothing else."""

from __future__ import annotations

import ipaddress
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vision_bench.live.answers import ReceiptStream
from vision_bench.live.failures import StreamFailure
from vision_bench.live.inlet import FrameLimits, Inlet
from vision_bench.live.jpeg import jpeg_size
from vision_bench.live.push import BadMessage, PushReader
from vision_bench.live.questions import may_ask, references
from vision_bench.live.references import is_reference
from vision_bench.live.registry import Limits, Registry
from vision_bench.live.sdp import MAX_CANDIDATES, BadSdp, checked_offer, read_fragment

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
URLS = st.sampled_from(
    ["stream://streams/a?frame_index=-1", "OVS://streams/b?start_frame_index=0", "stream:x", "data:,"]
)


@given(st.binary(max_size=200))
def test_a_size_is_two_whole_numbers_or_none(data: bytes) -> None:
    """Whatever follows a JPEG's beginning."""
    size = jpeg_size(b"\xff\xd8" + data + b"\xff\xd9")
    assert size is None or (0 < size[0] < 65536 and 0 < size[1] < 65536)


@given(st.lists(st.binary(max_size=60) | st.text(max_size=60) | VALUES.map(json.dumps), max_size=8))
def test_a_connection_that_pushes_is_answered_or_refused(messages: list[Any]) -> None:
    """No message raises anything but BadMessage, and each picture that is not stored is counted once."""
    stream = Registry(Limits()).create("ann")
    reader = PushReader(Inlet(stream, FrameLimits(), clock_id="server"))
    dropped = 0
    for message in messages:
        try:
            if isinstance(message, bytes):
                dropped += reader.picture(message)["type"] == "dropped"
            else:
                reader.text(message)
        except BadMessage:
            continue
    assert stream.dropped.total() == dropped


HOSTS = st.ip_addresses().map(str) | st.text("abcdef0123456789.:-", min_size=1, max_size=16) | st.just("x.local")
CANDIDATES = st.builds("a=candidate:1 1 {} 1 {} 5 typ host".format, st.sampled_from(["udp", "UDP", "tcp"]), HOSTS)
LINES = st.text(st.characters(codec="ascii"), max_size=30) | CANDIDATES | st.sampled_from(["a=mid:0", "m=audio 9 x 0"])


@given(st.lists(LINES, max_size=40))
def test_what_is_left_of_a_description_names_no_hosts(lines: list[str]) -> None:
    """Each candidate that passes is an address, and there are no more than may be."""
    text = "\n".join(["v=0", "m=video 9 x 96", *lines])
    left: list[str] = []
    try:
        left += [line for line in checked_offer(text).split("\r\n") if line.startswith("a=candidate:")]
        assert len(left) <= MAX_CANDIDATES
        left += [line for _, line in read_fragment(text).candidates]
    except BadSdp:
        pass
    for line in left:
        ipaddress.ip_address(line.split()[4])


@given(VALUES, st.lists(st.tuples(st.sampled_from(["image_url", "video_url", "text"]), URLS | VALUES), max_size=4))
def test_a_body_with_a_reference_is_never_taken_for_one_without(rest: Any, parts: list[Any]) -> None:
    """Whatever surrounds it, and however JSON spells it: what has a reference is looked into."""
    content = [{name: {"url": url}} for name, url in parts]
    body = {"messages": [{"role": "user", "content": content}, rest]}
    named = any(name != "text" and isinstance(url, str) and is_reference(url) for name, url in parts)
    for text in (json.dumps(body), json.dumps(body, ensure_ascii=False)):
        assert may_ask(text.encode("utf-8", "surrogatepass")) or not named
    try:
        assert bool(references(body)) == named
    except StreamFailure:
        assert named


EVENTS = st.lists(
    st.builds(
        lambda text, finish: {"choices": [{"delta": {"content": text}, "finish_reason": finish}]},
        st.text(max_size=5),
        st.sampled_from([None, "stop"]),
    )
    | st.just({"choices": [], "usage": {"prompt_tokens": 1}}),
    max_size=6,
)


@given(EVENTS, st.lists(st.integers(1, 40), max_size=6))
def test_events_pass_whole_in_order_and_one_has_the_receipt(events: list[Any], cuts: list[int]) -> None:
    """However the bytes are cut: every event once, the last one with the receipt, then [DONE]."""
    data = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events) + b"data: [DONE]\n\n"
    stream = ReceiptStream(lambda _: {"receipt": 1}, on_token=lambda: None)
    out, at = b"", 0
    for size in [*cuts, len(data)]:
        out += stream.feed(data[at : at + size])
        at += size
    passed = [json.loads(line[6:]) for line in out.decode().split("\n\n") if line.startswith("data: {")]
    last = {**(events[-1] if events and _may_end(events[-1]) else {"choices": []}), "receipt": 1}
    assert passed == [*(events[:-1] if events and _may_end(events[-1]) else events), last]
    assert out.endswith(b"data: [DONE]\n\n")


def _may_end(event: Any) -> bool:
    return not event["choices"] or event["choices"][0]["finish_reason"] is not None
