"""The two forms of a log line."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Mapping

import pytest

from vision_bench.gateway.exchange import Exchange
from vision_bench.gateway.logs import EntryLog, JsonFormatter, LineHandler, TextFormatter, WithoutQuery
from vision_bench.gateway.middleware import RequestEntry


class Pair:
    """An entry."""

    def __str__(self) -> str:
        return "items=- name=a"

    def fields(self) -> Mapping[str, str | int | None]:
        return {"items": None, "name": "a"}


def record(message: object, *args: object, **extra: object) -> logging.LogRecord:
    return logging.getLogger("vision_bench.x").makeRecord(
        "vision_bench.x", logging.WARNING, "f.py", 1, message, args, None, extra=extra
    )


def test_text_is_what_the_library_writes() -> None:
    """The same letters as ``%(asctime)s %(levelname)s %(message)s``, in every millisecond and over a new second."""
    ours, plain = TextFormatter(), logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    for created in (0.0, 1780911130.0, 1780911130.0015, 1780911130.9999, 1780911131.25, 1780911130.5):
        one = record("a %s", "b")
        one.created, one.msecs = created, created % 1 * 1e3
        assert ours.format(one) == plain.format(one)


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_an_exception_is_in_the_log(formatter: logging.Formatter) -> None:
    """Text shows its traceback below the line; an object has it as a field, and stays one line."""
    try:
        raise ValueError("the reason")
    except ValueError:
        one = record("failed")
        one.exc_info = sys.exc_info()
    shown = formatter.format(one)
    assert "ValueError: the reason" in shown
    assert "Traceback" in shown
    if isinstance(formatter, JsonFormatter):
        assert "\n" not in shown
        assert json.loads(shown)["exception"].endswith("ValueError: the reason")


def test_an_object_has_typed_fields() -> None:
    """Time in UTC, level and logger; an entry's values as they are, None as null; a message as text with its ids."""
    one = record(Pair())
    one.created, one.msecs = 1780911130.25, 250.0
    assert json.loads(JsonFormatter().format(one)) == {
        "ts": "2026-06-08T09:32:10.250Z",
        "level": "WARNING",
        "logger": "vision_bench.x",
        "items": None,
        "name": "a",
    }
    shown = json.loads(JsonFormatter().format(record("a %s", "b", request_id="r", trace_id=None)))
    assert (shown["message"], shown["request_id"]) == ("a b", "r")
    assert "trace_id" not in shown


@pytest.mark.parametrize("text", ["a\nb", 'a", "level": "x', "\u2028\u0085", "\ud800", "안녕", "\x00\x1b[31m"])
def test_no_text_breaks_a_line(text: str) -> None:
    """Whatever a message holds, an object is one line of ASCII with that message in one field."""
    shown = JsonFormatter().format(record("%s", text))
    assert shown.isascii()
    assert len(shown.splitlines()) == 1
    assert json.loads(shown) | {"ts": ""} == {
        "ts": "",
        "level": "WARNING",
        "logger": "vision_bench.x",
        "message": text,
    }


@pytest.mark.parametrize("path", ["/x outcome=ok", "/x\noutcome=ok", "/\u2028", '/"a" b', "/x%0A", "/안 녕", "/=a b=c"])
def test_a_path_adds_no_field_to_a_request(path: str) -> None:
    """Text splits at spaces into the same names whatever was asked for; an object has the path in one field."""
    exchange = Exchange("id", status=404, outcome="not_found")
    entry = RequestEntry({"method": "GET", "path": path}, exchange)
    pairs = [pair.partition("=") for pair in str(entry).split()]
    assert [name for name, _, _ in pairs] == list(entry.fields())
    assert len(str(entry).splitlines()) == 1
    assert entry.fields()["route"] == path


def test_an_entry_is_a_whole_record() -> None:
    """Made without the library's help, it has all that a handler of somebody else's may ask for."""
    stream = io.StringIO()
    logger = logging.Logger("a.b")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(name)s %(levelno)s %(process)d %(thread)d %(lineno)d %(message)s")
    )
    logger.addHandler(handler)
    EntryLog(logger).add(Pair())
    assert re.fullmatch(r"\S+ \S+ a\.b 20 \d+ \d+ 0 items=- name=a\n", stream.getvalue())
    kept = vars(logging.LogRecord("a.b", 20, "", 0, "", (), None)).keys()
    assert kept == EntryLog(logger)._template.keys()


def test_a_level_above_info_logs_no_entry() -> None:
    """Who asks for warnings only gets no line a request."""
    written = {}
    for level in (logging.WARNING, logging.INFO):
        stream = io.StringIO()
        logger = logging.Logger("a.b", level)
        logger.addHandler(LineHandler(stream))
        EntryLog(logger).add(Pair())
        written[level] = stream.getvalue()
    assert written == {logging.WARNING: "", logging.INFO: "items=- name=a\n"}


def test_a_websockets_query_is_in_no_line() -> None:
    """What uvicorn writes of a WebSocket ends with its path; other lines, of other arguments, pass as they are."""
    for message, args in (
        ('%s - "WebSocket %s" [accepted]', ("127.0.0.1:1", "/live/push/x?token=SECRET")),
        ('%s - "WebSocket %s" %d', ("127.0.0.1:1", "/live/push/x?token=SECRET", 403)),
    ):
        one = record(message, *args)
        assert WithoutQuery().filter(one)
        assert '"WebSocket /live/push/x"' in one.getMessage()
    plain = record("is it %s", "a?b")
    assert WithoutQuery().filter(plain)
    assert plain.getMessage() == "is it a?b"
