"""The two bodies of a failure, and the catalogue behind them."""

from __future__ import annotations

from typing import get_args

from vision_bench.errors import CallerError
from vision_bench.live.failures import ANSWERS, Code, StreamFailure


def test_a_failed_question_has_the_catalogue_s_body() -> None:
    """Chat errors are an object in ``detail``; those of /streams are one line in it."""
    problem = StreamFailure("stream_not_found", "Stream not found: x")
    assert problem.chat_body() == {
        "detail": {"error": {"message": "Stream not found: x", "type": "stream_error", "code": "stream_not_found"}}
    }
    assert problem.stream_body() == {"detail": "Stream not found: x"}
    assert isinstance(problem, CallerError)


def test_every_code_has_its_status() -> None:
    """Bad references are 400, what is not there 404, not yet 409, gone 410, too many 429, no room 503;
    a source that is not to be had 422, a wrong token 401."""
    assert set(get_args(Code)) == set(ANSWERS)
    assert {code: StreamFailure(code, "").status for code in ANSWERS} == {
        "stream_url_invalid": 400,
        "query_param_invalid": 400,
        "segment_invalid": 400,
        "stream_not_found": 404,
        "segment_empty": 404,
        "frame_not_yet_produced": 409,
        "frame_evicted": 410,
        "stream_limit": 429,
        "streams_full": 503,
        "source_refused": 422,
        "source_failed": 422,
        "stream_unauthorized": 401,
    }
