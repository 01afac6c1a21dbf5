"""wire.sse: the event-stream grammar."""

from __future__ import annotations

import pytest

from vision_bench.wire.sse import Event, EventParser, encode_event


def parse(*chunks: bytes) -> list[Event]:
    parser = EventParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.close()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_all_three_line_ends(end: bytes) -> None:
    """LF, CRLF and CR each end a line, and two of them an event."""
    assert parse(b"data: a" + end + b"data: b" + end + end + b"data: c" + end + end) == [Event("a\nb"), Event("c")]


def test_crlf_cut_between_its_two_bytes_is_one_line_end() -> None:
    """A chunk that ends in CR, and the LF in the next one, do not make an empty line."""
    assert parse(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [Event("a\nb")]


def test_unicode_separators_do_not_end_a_line() -> None:
    """U+2028, U+2029 and U+0085 stand inside an answer."""
    text = "가\u2028나\u2029다\u0085라"
    assert parse(f"data: {text}\n\n".encode()) == [Event(text)]


def test_comments_unknown_fields_and_empty_events_give_nothing() -> None:
    """A comment, a bare colon, `retry`, an unknown field and a name without data are no event."""
    assert parse(b": ping\n\n:\n\nretry: 3000\n\nfoo: bar\n\nevent: x\n\n") == []


def test_one_space_after_the_colon_is_taken_off() -> None:
    """`data:a`, `data: a` and `data:  a` differ by the spaces beyond the first."""
    assert [event.data for event in parse(b"data:a\n\ndata: a\n\ndata:  a\n\n")] == ["a", "a", " a"]


def test_event_name_lasts_one_event_and_id_lasts_on() -> None:
    """The name resets after each event; the last id stays."""
    assert parse(b"event: error\nid: 7\ndata: a\n\ndata: b\n\n") == [
        Event("a", "error", "7"),
        Event("b", "message", "7"),
    ]


def test_byte_order_mark_before_the_first_line_is_skipped() -> None:
    """A leading BOM does not hide the first field."""
    assert parse(b"\xef\xbb\xbfdata: a\n\n") == [Event("a")]


def test_close_hands_over_an_event_without_its_blank_line() -> None:
    """A proxy that strips the final newlines does not lose the last event."""
    assert parse(b"data: a\n\ndata: [DONE]") == [Event("a"), Event("[DONE]")]


def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    """Damage in one event does not stop the next one."""
    assert parse(b"data: \xff\n\ndata: b\n\n") == [Event("\ufffd"), Event("b")]


def test_encoded_event_reads_back() -> None:
    """A line end in the data becomes a second data line."""
    data = encode_event("a\nb", event="error")
    assert data == b"event: error\ndata: a\ndata: b\n\n"
    assert parse(data) == [Event("a\nb", "error")]
