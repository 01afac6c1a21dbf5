"""Laws of the stream readers: nothing depends on how the network cut the bytes."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from vision_bench.wire.chat_stream import StreamReader
from vision_bench.wire.sse import Event, EventParser, encode_event

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
LINE_END = st.sampled_from(["\n", "\r\n", "\r"])


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def parse(chunks: list[bytes]) -> list[Event]:
    parser = EventParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()


@given(st.lists(TEXT, min_size=1, max_size=5), LINE_END, st.lists(st.integers(0, 10_000), max_size=30))
def test_events_do_not_depend_on_chunking(texts: list[str], end: str, places: list[int]) -> None:
    """Any cut of any stream with any line end gives the events of the whole stream."""
    stream = "".join(f"event: e{end}data: {json.dumps(text)}{end}: c{end}{end}" for text in texts).encode()
    assert parse(cut(stream, places)) == [Event(json.dumps(text), "e") for text in texts]


@given(st.binary(max_size=300), st.lists(st.integers(0, 10_000), max_size=20))
def test_any_bytes_parse_alike_however_cut(data: bytes, places: list[int]) -> None:
    """Rubbish gives the same events in one piece and in many, and never an exception."""
    assert parse(cut(data, places)) == parse([data])


@given(TEXT.filter(lambda text: "\r" not in text))
def test_encode_then_parse_is_identity(text: str) -> None:
    """What is written is what is read; only CR is turned into LF, as the grammar has no way to keep it."""
    assert parse([encode_event(text)]) == [Event(text)]


@given(st.lists(TEXT, max_size=6), st.lists(st.integers(0, 10_000), max_size=30))
def test_chat_text_is_the_sum_of_its_pieces(texts: list[str], places: list[int]) -> None:
    """Text, deltas and outcome of a chat stream are the same for every cut."""
    chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    events = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks] + ["[DONE]"]
    stream = b"".join(encode_event(event) for event in events)
    reader = StreamReader()
    deltas = [delta for chunk in cut(stream, places) for delta in reader.feed(chunk)]
    reader.close()
    assert reader.text == "".join(texts) == "".join(delta.text for delta in deltas)
    assert reader.outcome == ("ok" if texts else "truncated")
