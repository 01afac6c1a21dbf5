"""Frame and segment references: ``stream://streams/<id>?…`` parsed and printed. ``ovs://`` is the same scheme.

A reference is a name inside a chat body, never a URL to fetch. Parsing needs no stream: what the numbers mean against
the frames that are held is in ``selection``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, cast
from urllib.parse import unquote

from vision_bench.live.failures import StreamFailure, shown

Part = Literal["image_url", "video_url"]
AnchorKind = Literal["frame_index", "timestamp_ms", "offset_ms"]
Direction = Literal["nearest", "forward", "backward"]

KINDS: tuple[AnchorKind, ...] = ("frame_index", "timestamp_ms", "offset_ms")
DIRECTIONS: tuple[Direction, ...] = ("nearest", "forward", "backward")
MAX_WAIT_MS = 60_000
"""The longest that a question may wait for a frame to come."""
MAX_FPS = 1_000
MAX_URL_LETTERS = 2_048

_SCHEME = re.compile(r"(?:stream|ovs):", re.IGNORECASE)
_URL = re.compile(r"(?:stream|ovs)://streams/([0-9A-Za-z_-]{1,64})\?([^#]*)", re.IGNORECASE)
_INTEGER = re.compile(r"-?[0-9]{1,15}")
_DECIMAL = re.compile(r"(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,3})?")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Anchor:
    """One place in a stream, named in one of three ways.

    ``frame_index`` is a lifetime index, or counts back from the newest frame when negative (-1). ``timestamp_ms`` is a
    time on the stream's clock, 0 at its first frame. ``offset_ms`` counts on from the oldest frame held, or back from
    the newest when negative.
    """

    kind: AnchorKind
    value: int


@dataclass(frozen=True, slots=True)
class FrameReference:
    """One frame. ``tolerance_ms`` and ``direction`` say how far and which way a time may miss; an index ignores them.

    Extensions: ``wait_ms`` waits that long for a frame that has not come; ``clamp`` takes the oldest or newest frame
    held instead of failing when the place lies before or after them.
    """

    stream_id: str
    anchor: Anchor
    tolerance_ms: int = 100
    direction: Direction = "nearest"
    wait_ms: int = 0
    clamp: bool = False


@dataclass(frozen=True, slots=True)
class SegmentReference:
    """Frames from ``start`` up to but without ``end``; None is the live edge, which lies behind the newest frame.

    ``max_fps`` is a ceiling, not a rate to be reached. Extension: ``wait_ms`` waits that long for the segment to fill.
    """

    stream_id: str
    start: Anchor
    end: Anchor | None = None
    max_fps: float = 1.0
    wait_ms: int = 0


def is_reference(url: str) -> bool:
    """Whether ``url`` has one of the two schemes, so that it is resolved here and never passed on."""
    return _SCHEME.match(url) is not None


def parse_reference(url: str, part: Part) -> FrameReference | SegmentReference:
    """The frame (of an ``image_url`` part) or segment (of a ``video_url`` part) that ``url`` names.

    Raises:
        StreamFailure: ``stream_url_invalid`` for another shape than ``stream://streams/<id>?…``;
            ``query_param_invalid`` for a missing, repeated, unknown or malformed parameter.
    """
    match = _URL.fullmatch(url) if len(url) <= MAX_URL_LETTERS else None
    if match is None:
        raise StreamFailure("stream_url_invalid", f"{shown(url)} is not of the form stream://streams/<id>?<parameters>")
    stream_id, values = match[1], _split(match[2])
    return _frame(stream_id, values) if part == "image_url" else _segment(stream_id, values)


def reference_url(reference: FrameReference | SegmentReference) -> str:
    """The URL that names ``reference``; parameters at their default are left out."""
    pairs: list[tuple[str, object]]
    if isinstance(reference, FrameReference):
        pairs = [
            (reference.anchor.kind, reference.anchor.value),
            ("tolerance_ms", reference.tolerance_ms if reference.tolerance_ms != 100 else None),
            ("direction", reference.direction if reference.direction != "nearest" else None),
            ("clamp", "true" if reference.clamp else None),
        ]
    else:
        pairs = [
            (f"start_{reference.start.kind}", reference.start.value),
            (f"end_{reference.end.kind}", reference.end.value) if reference.end else ("", None),
            ("max_fps", reference.max_fps if reference.max_fps != 1.0 else None),
        ]
    pairs.append(("wait_ms", reference.wait_ms or None))
    query = "&".join(f"{name}={value}" for name, value in pairs if value is not None)
    return f"stream://streams/{reference.stream_id}?{query}"


def _frame(stream_id: str, values: Mapping[str, str]) -> FrameReference:
    _refuse_unknown(values, (*KINDS, "tolerance_ms", "direction", "wait_ms", "clamp"), "image_url")
    anchor = _anchor(values, "")
    if anchor is None:
        raise _invalid(f"name one frame with {' or '.join(KINDS)}; frame_index=-1 is the newest")
    return FrameReference(
        stream_id,
        anchor,
        tolerance_ms=_read(values, "tolerance_ms", _positive, 100),
        direction=cast(Direction, _read(values, "direction", _one_of(DIRECTIONS), "nearest")),
        wait_ms=_read(values, "wait_ms", _wait, 0),
        clamp=_read(values, "clamp", _one_of(("true", "false")), "false") == "true",
    )


def _segment(stream_id: str, values: Mapping[str, str]) -> SegmentReference:
    if "clamp" in values:
        raise _invalid("clamp is for image_url; a segment is always cut to the frames that are held")
    names = [f"{side}_{kind}" for side in ("start", "end") for kind in KINDS]
    _refuse_unknown(values, (*names, "max_fps", "wait_ms"), "video_url")
    start = _anchor(values, "start_")
    if start is None:
        raise _invalid(f"a segment needs {' or '.join(names[:3])}; start_offset_ms=-5000 is the last five seconds")
    return SegmentReference(
        stream_id,
        start,
        end=_anchor(values, "end_"),
        max_fps=_read(values, "max_fps", _rate, 1.0),
        wait_ms=_read(values, "wait_ms", _wait, 0),
    )


def _split(query: str) -> dict[str, str]:
    """Parameters by name. Percent-encoding is undone; ``+`` is no space, for no value may hold one."""
    values: dict[str, str] = {}
    for piece in query.split("&") if query else ():
        name, equals, value = piece.partition("=")
        name = unquote(name)
        if not (name and equals):
            raise _invalid(f"{shown(piece)} is not of the form name=value")
        if name in values:
            raise _invalid(f"{shown(name)} is given twice; give it once")
        values[name] = unquote(value)
    return values


def _refuse_unknown(values: Mapping[str, str], known: Collection[str], part: Part) -> None:
    for name in values:
        if name not in known:
            raise _invalid(f"{shown(name)} is no parameter of {part}; it takes {', '.join(known)}")


def _anchor(values: Mapping[str, str], prefix: str) -> Anchor | None:
    given = [kind for kind in KINDS if prefix + kind in values]
    if len(given) > 1:
        raise _invalid(f"{' and '.join(prefix + kind for kind in given)} contradict each other; give one of them")
    return Anchor(given[0], _read(values, prefix + given[0], _integer, 0)) if given else None


def _read(values: Mapping[str, str], name: str, read: Callable[[str], T], default: T) -> T:
    if name not in values:
        return default
    try:
        return read(values[name])
    except ValueError as problem:
        raise _invalid(f"{name}={shown(values[name])} is not {problem}") from None


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError("a whole number")
    return int(text)


def _positive(text: str) -> int:
    if not _INTEGER.fullmatch(text) or int(text) < 1:
        raise ValueError("a whole number above 0")
    return int(text)


def _wait(text: str) -> int:
    if not _INTEGER.fullmatch(text) or not 0 <= int(text) <= MAX_WAIT_MS:
        raise ValueError(f"a whole number from 0 to {MAX_WAIT_MS}")
    return int(text)


def _rate(text: str) -> float:
    if not _DECIMAL.fullmatch(text) or not 0 < float(text) <= MAX_FPS:
        raise ValueError(f"a number of frames a second above 0 and up to {MAX_FPS}")
    return float(text)


def _one_of(words: Collection[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return read


def _invalid(message: str) -> StreamFailure:
    return StreamFailure("query_param_invalid", message)
