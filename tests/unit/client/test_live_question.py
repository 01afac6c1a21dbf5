"""client.live_question: windows as references, questions as bodies."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.answers.analysis import Question
from vision_bench.client.live_question import Absolute, Latest, LiveQuestion, Trailing
from vision_bench.client.live_rules import Unavailable, code_of, is_fatal, is_unavailable
from vision_bench.errors import (
    BrokenStream,
    ConnectFailed,
    HttpFailure,
    InvalidRequest,
    UpstreamError,
    UpstreamTimeout,
    VisionBenchError,
)
from vision_bench.live.references import parse_reference, reference_url

WINDOWS = [
    (Latest(), "image_url", "frame_index=-1"),
    (Latest(wait_ms=500), "image_url", "frame_index=-1&wait_ms=500"),
    (Trailing(5), "video_url", "start_offset_ms=-5000"),
    (Trailing(0.25, max_fps=2.5, wait_ms=9), "video_url", "start_offset_ms=-250&max_fps=2.5&wait_ms=9"),
    (Absolute(1000, 3000, max_fps=4), "video_url", "start_timestamp_ms=1000&end_timestamp_ms=3000&max_fps=4"),
]


@pytest.mark.parametrize(("window", "kind", "query"), WINDOWS)
def test_a_window_is_a_reference_that_the_gateway_reads(window: Any, kind: Any, query: str) -> None:
    """Its part of the body, and the server's own parser takes the URL for the same place."""
    part = window.part("s-1")
    url = part[kind]["url"]
    assert (part["type"], url) == (kind, f"stream://streams/s-1?{query}")
    reference = parse_reference(url, kind)
    assert parse_reference(reference_url(reference), kind) == reference


@pytest.mark.parametrize(
    "make",
    [
        lambda: Trailing(0),
        lambda: Trailing(-5),
        lambda: Trailing(float("nan")),
        lambda: Absolute(5, 5),
        lambda: Absolute(-1, 5),
        lambda: LiveQuestion("?", Latest(wait_ms=-1)),
        lambda: LiveQuestion("?", Latest(wait_ms=60_001)),
        lambda: LiveQuestion("?", Trailing(5, max_fps=0)),
        lambda: LiveQuestion("?", Trailing(5, max_fps=float("nan"))),
        lambda: LiveQuestion("?", Absolute(0, 5, max_fps=1001)),
        lambda: Unavailable("fallback"),
        lambda: Unavailable("wait", model="small"),
    ],
)
def test_what_no_gateway_takes_is_refused_here(make: Any) -> None:
    """Before anything is sent, with the value."""
    with pytest.raises(InvalidRequest):
        make()


def test_a_body_says_all_that_was_asked_and_nothing_else() -> None:
    """Frames, prompt, budget, schema, thread; what was not given is left to the server."""
    plain = LiveQuestion("what?").body("s", model="qwen")
    assert set(plain) == {"model", "messages", "stream", "stream_options"}
    full = LiveQuestion(
        Question("what?", {"type": "object"}, "thing"), max_tokens=9, temperature=0.5, thread_id="t"
    ).body("s", model="other")
    assert (full["model"], full["max_tokens"], full["temperature"], full["thread_id"]) == ("other", 9, 0.5, "t")
    assert full["response_format"]["json_schema"]["name"] == "thing"


def failed(status: int, code: str = "") -> HttpFailure:
    return HttpFailure(status, "x", body=f'{{"detail": {{"error": {{"code": "{code}"}}}}}}'.encode())


@pytest.mark.parametrize(
    ("problem", "fatal"),
    [
        (failed(400, "query_param_invalid"), True),
        (failed(401, "unauthorized"), True),
        (failed(404, "stream_not_found"), True),
        (failed(404, "model_unavailable"), True),
        (failed(410, "frame_evicted"), True),
        (failed(422), True),
        (failed(404, "segment_empty"), False),
        (failed(408), False),
        (failed(409, "frame_not_yet_produced"), False),
        (failed(429, "rate_limited"), False),
        (failed(500), False),
        (failed(503, "model_unavailable"), False),
        (ConnectFailed("x"), False),
        (UpstreamTimeout("x"), False),
        (BrokenStream("x"), False),
        (InvalidRequest("x"), True),
    ],
)
def test_which_failures_would_not_pass(problem: VisionBenchError, fatal: bool) -> None:
    """Every 4xx but those that time may heal, and what this side does wrong."""
    assert is_fatal(problem) is fatal


@pytest.mark.parametrize(
    ("problem", "unavailable"),
    [
        (failed(503, "model_unavailable"), True),
        (failed(404, "model_unavailable"), True),
        (failed(502, "upstream_request_failed"), True),
        (failed(504, "upstream_timeout"), False),
        (failed(404, "stream_not_found"), False),
        (ConnectFailed("the gateway itself"), False),
    ],
)
def test_which_failures_are_the_models(problem: UpstreamError, unavailable: bool) -> None:
    """Another model may be asked where this one cannot be had; not where the gateway or the stream is gone."""
    assert is_unavailable(problem) is unavailable


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"detail": {"error": {"code": "frame_evicted"}}}', "frame_evicted"),
        (b'{"error": {"code": "frame_evicted"}}', "frame_evicted"),
        (b'{"error": {"code": 404}}', None),
        (b'{"detail": "gone"}', None),
        (b"[]", None),
        (b"\xff", None),
        (b"", None),
    ],
)
def test_the_code_of_a_failure(body: bytes, code: str | None) -> None:
    """From the body of either API; None where a proxy or another server wrote it."""
    assert code_of(HttpFailure(400, "x", body=body)) == code
