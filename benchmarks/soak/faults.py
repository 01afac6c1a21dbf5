"""What can go wrong in front of the gateway and behind it, and what a caller may then see of it.

The names are the language of the whole soak: the plan draws them, the stub upstream plays them, the checks hold what
was seen against ``PLAIN``, ``STREAM`` and ``ITEM``.
"""

from __future__ import annotations

from collections.abc import Mapping

Outcomes = frozenset[str]


def _seen(*names: str) -> Outcomes:
    return frozenset(names)


# An outcome is "ok" (an answer, whole, and this request's own), "passed" (something else of the upstream's, unchanged),
# "http_404" (an error of the upstream's), or the type of an error that the gateway made. "broken:…" is a transfer that
# was cut after an error event of that type.
_BROKE = _seen("truncated")
_SLOW = _seen("upstream_timeout")

PLAIN: Mapping[str, Outcomes] = {
    "ok": _seen("ok"),
    "large": _seen("ok"),
    "drip": _seen("ok"),
    "surplus": _seen("ok"),
    "closes": _seen("ok"),
    "hold": _seen("ok"),
    "http_400": _seen("http_400"),
    "http_404": _seen("http_404"),
    "http_429": _seen("http_429"),
    "http_500": _seen("http_500"),
    "http_503": _seen("http_503"),
    "early": _seen("http_413", "truncated"),
    "reset_before": _BROKE,
    "reset_in_upload": _BROKE,
    "reset_in_head": _BROKE,
    "reset_in_body": _BROKE,
    "short": _BROKE,
    "no_http": _BROKE,
    "endless_head": _BROKE,
    "bad_chunks": _BROKE,
    "bad_status": _seen("upstream_error"),
    "silence": _SLOW,
    "silence_in_body": _SLOW,
    "unread": _SLOW,
    "endless_drip": _SLOW,
    "no_json": _seen("passed"),
    "error_200": _seen("passed"),
    "nan": _seen("passed"),
    "empty": _seen("passed"),
    "stream": _seen("passed"),
}
"""What a caller of /chat may see when the upstream does this."""

STREAM: Mapping[str, Outcomes] = {
    "stream": _seen("ok"),
    "long_stream": _seen("ok"),
    "http_400": _seen("http_400"),
    "http_500": _seen("http_500"),
    "reset_before": _BROKE,
    "reset_in_stream": _seen("broken:truncated"),
    "bad_chunks_in_stream": _seen("broken:truncated"),
    "silence": _SLOW,
    "silence_in_stream": _seen("broken:upstream_timeout"),
    "endless_stream": _seen("broken:upstream_timeout"),
    "error_in_stream": _seen("passed"),
}
"""What a caller of a streamed /chat may see."""

ITEM: Mapping[str, Outcomes] = {
    **PLAIN,
    "no_json": _seen("upstream_error"),
    "error_200": _seen("upstream_error"),
    "nan": _seen("ok"),
    "empty": _seen("truncated"),
    "stream": _seen("upstream_error"),
}
"""What a line of a batch may say."""

REFUSED: Mapping[str, Outcomes] = {
    "malformed": _seen("invalid_request"),
    "same_ids": _seen("invalid_request"),
    "too_many": _seen("too_many_items"),
    "too_large": _seen("too_large"),
    "too_large_chunked": _seen("too_large"),
    "stands_still": _seen("upload_timeout"),
    "not_found": _seen("not_found"),
    "wrong_method": _seen("method_not_allowed"),
    "no_http": _seen("not_http", "closed"),
}
"""What a caller sees whose request is none: the upstream never hears of it, or not of all of it. What is no HTTP has
no answer of its own when it stands behind a request that still has to get one."""

OUTAGE = _seen("connect_failed", "truncated", "broken:truncated", "unasked")
"""What anybody may see beside it while the upstream is being stopped and started."""

CROWD = _seen("acquire_timeout")
"""What some of a crowd must see that is more than the permits can serve in time."""

UNREAD = _seen("early", "unread", "reset_in_upload")
"""What the upstream does before it has read the request's body."""

SILENT = _seen("silence", "silence_in_body", "unread", "endless_drip", "silence_in_stream", "endless_stream")
"""What costs the whole of VLLM_TIMEOUT_SECONDS."""
