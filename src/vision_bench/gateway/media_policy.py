"""What a body may make vLLM fetch and decode: media URLs by their hosts, frames by their number.

Only where an operator asked for it: without one of its settings no body is looked into. Whatever another parser could
read in another way is refused, so that what was checked is what runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Self

from vision_bench.gateway.exchange import Refusal
from vision_bench.gateway.media_hosts import HostList, why_not
from vision_bench.gateway.settings import Settings
from vision_bench.wire.shapes import MAX_DEPTH

LONG_STRING_BYTES = 4096
"""What is longer is media, or text: it is not looked at beyond its first letters. No URL to fetch is so long."""

SKELETON_BYTES = 256 * 1024
"""A body without its long strings. More would take the event loop for longer than other callers should wait."""

_MEDIA_KEYS = frozenset({"image", "video", "audio", "input_image"})
_FPS_KEY = re.compile(r"(?:.*_)?fps")
_FRAMES_KEY = re.compile(r"(?:.*_)?n?frames")
_NO_LIMITS = frozenset({"total_num_frames", "do_sample_frames"})  # of the source, and a switch
_CUT_DATA, _CUT = b'"data:"', rb'"\u0000"'


class MediaPolicy:
    """The rules of one gateway.

    Args:
        hosts: what remote media URLs may name; empty: no remote URL at all.
        max_fps, max_num_frames: what a body may ask for. None: whatever it likes.
    """

    def __init__(
        self, hosts: Sequence[str], *, max_fps: float | None = None, max_num_frames: int | None = None
    ) -> None:
        self._hosts = HostList(hosts)
        self._max_fps = max_fps
        self._max_num_frames = max_num_frames

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """The policy that the settings ask for; None: bodies are not looked into.

        One setting is enough to have all rules: a list of hosts that is not set is an empty one.
        """
        asked = (settings.gateway_media_domains, settings.gateway_max_fps, settings.gateway_max_num_frames)
        if all(setting is None for setting in asked):
            return None
        return cls(
            settings.gateway_media_domains or (),
            max_fps=settings.gateway_max_fps,
            max_num_frames=settings.gateway_max_num_frames,
        )

    def check(self, body: bytes, *, place: str = "") -> None:
        """Raise Refusal unless the chat body keeps to the rules.

        Args:
            place: where the body stands in its request, such as ``items[2].body.``; begins the ``param`` of a refusal.

        Raises:
            Refusal: 400, naming the field; 413, too much beside its long strings.
        """
        value = _parsed(body, place)
        for where, key, found in _fields(value.get("messages"), f"{place}messages"):
            self._check_media(where, key, found)
        for name in ("media_io_kwargs", "mm_processor_kwargs"):
            for where, key, found in _fields(value.get(name), place + name):
                self._check_number(where, key, found)

    def _check_media(self, where: str, key: str, value: Any) -> None:
        """One field of a message, whatever object it stands in: vLLM takes URLs bare and in objects, with and without
        a ``type`` beside them. Objects are walked, so that their fields come by themselves."""
        if key == "url" or key.endswith("_url") or key in _MEDIA_KEYS:
            if isinstance(value, str):
                self._check_url(where, value)
            elif isinstance(value, list):
                for child in value:
                    self._check_media(where, key, child)
            elif value is not None and not isinstance(value, dict):
                _refuse(where, "is no URL")
        elif key == "data" and isinstance(value, str) and ":" in value:  # base64, of input_audio, has no colon
            self._check_url(where, value)

    def _check_url(self, where: str, url: str) -> None:
        if url[:5].lower() == "data:":
            return
        if fault := why_not(url, self._hosts):
            _refuse(where, fault)

    def _check_number(self, where: str, key: str, value: Any) -> None:
        if key in _NO_LIMITS:
            return
        for pattern, limit, setting in (
            (_FPS_KEY, self._max_fps, "GATEWAY_MAX_FPS"),
            (_FRAMES_KEY, self._max_num_frames, "GATEWAY_MAX_NUM_FRAMES"),
        ):
            if limit is None or not pattern.fullmatch(key):
                continue
            # Zero and less mean "all there are" to some loaders, and so does null.
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= limit:
                _refuse(where, f"must be a number above 0 and at most {limit:g} ({setting})")


def _refuse(where: str, fault: str) -> NoReturn:
    raise Refusal(400, f"{where}: {fault}", type="media_not_allowed", param=where)


def _fields(value: Any, place: str) -> Iterator[tuple[str, str, Any]]:
    """Every field of every object in ``value``, as (place, name, value)."""
    waiting = [(value, place)]
    while waiting:
        parent, at = waiting.pop()
        if isinstance(parent, dict):
            for key, child in parent.items():
                yield f"{at}.{key}", key, child
                waiting.append((child, f"{at}.{key}"))
        elif isinstance(parent, list):
            waiting += [(child, f"{at}[{index}]") for index, child in enumerate(parent) if child]


def _parsed(body: bytes, place: str) -> dict[str, Any]:
    """The body as an object, its long strings cut.

    Raises:
        Refusal: not UTF-8, not strict JSON, nested too deeply, a name twice in an object, no object, too large.
    """
    where = place.rstrip(".") or None
    named = where or "the body"
    try:
        text = _skeleton(body, named).decode()
        value = json.loads(text, object_pairs_hook=_without_twins, parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        reason = "nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise Refusal(400, f"{named}: not JSON ({reason})", type="invalid_request", param=where) from problem
    if not isinstance(value, dict):
        raise Refusal(400, f"{named}: must be a chat.completions object", type="invalid_request", param=where)
    if _is_deep(value):
        fault = f"{named}: nested deeper than {MAX_DEPTH} levels"
        raise Refusal(400, fault, type="invalid_request", param=where)
    return value


def _skeleton(body: bytes, named: str) -> bytes:
    """``body`` with its long strings cut. Where it is JSON, so is this, with the same objects and fields.

    From the first on, every second quote that is not escaped ends a string.

    Raises:
        Refusal: 413, for a body that is mostly something else.
    """
    pieces = []
    size_bytes = at = 0
    while size_bytes <= SKELETON_BYTES and (begin := body.find(b'"', at)) >= 0:
        end, escaped_quotes = _end_of_string(body, begin)
        if end - begin > LONG_STRING_BYTES:
            cut = _CUT_DATA if body[begin + 1 : begin + 6].lower() == b"data:" else _CUT
            pieces += [body[at:begin], cut]
            size_bytes += begin - at + len(cut)
        else:
            pieces.append(body[at:end])
            size_bytes += end - at
        size_bytes += 2 * escaped_quotes  # each takes as long as a string
        at = end
    if size_bytes + len(body) - at > SKELETON_BYTES:
        message = (
            f"{named}: more than {SKELETON_BYTES} bytes beside strings of {LONG_STRING_BYTES} and more, which is too "
            "much to look into; send fewer messages"
        )
        raise Refusal(413, message, type="too_large")
    pieces.append(body[at:])
    return b"".join(pieces)


def _end_of_string(body: bytes, begin: int) -> tuple[int, int]:
    """Where the string ends whose first quote is at ``begin`` (or the body, or our patience), and the quotes in it."""
    at = begin + 1
    for escaped_quotes in range(SKELETON_BYTES):
        quote = body.find(b'"', at)
        if quote < 0:
            return len(body), escaped_quotes
        if _backslashes_before(body, quote, begin + 1) % 2 == 0:
            return quote + 1, escaped_quotes
        at = quote + 1
    return at, SKELETON_BYTES


def _backslashes_before(body: bytes, end: int, begin: int) -> int:
    length = 16
    while True:
        run = body[max(begin, end - length) : end]
        count = len(run) - len(run.rstrip(b"\\"))
        if count < length:
            return count
        length *= 8


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the name {name[:50]!r} stands twice in one object")
            seen.add(name)
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ())
        ]
        if not level:
            return False
    return True
