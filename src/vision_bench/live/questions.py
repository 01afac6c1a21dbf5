"""A chat body that names frames: its references found, and the pictures put in their places.

A part's URL stands bare or in an object, with and without a ``type`` beside it: vLLM takes them all.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image

from vision_bench.live.failures import StreamFailure
from vision_bench.live.references import FrameReference, Part, SegmentReference, is_reference, parse_reference
from vision_bench.live.ring import Frame

Json = dict[str, Any]

MAX_REFERENCES = 16
_PARTS: tuple[Part, ...] = ("image_url", "video_url")
_FIELDS = (b'"thread_id"', b"\\")
_SCHEMES = (b"stream", b"ovs")


def may_ask(body: bytes) -> bool:
    """Whether a body may hold a reference or a thread: if not, it need not be parsed. No whole picture is looked at.

    Base64 has neither colons nor backslashes, so that both are found at the speed of memory.
    """
    if any(field in body for field in _FIELDS):  # an escaped letter may hide either
        return True
    at = body.find(b":")
    while at >= 0:
        if body[max(0, at - 6) : at].lower().endswith(_SCHEMES):
            return True
        at = body.find(b":", at + 1)
    return False


@dataclass(frozen=True, slots=True)
class Slot:
    """One reference, and the object whose field ``key`` is to hold the pictures."""

    holder: Json
    key: str
    reference: FrameReference | SegmentReference


def references(body: Json) -> list[Slot]:
    """The references of a chat body, in their order.

    Raises:
        StreamFailure: one that is malformed, or more than ``MAX_REFERENCES``.
    """
    slots = []
    for part in _content_parts(body):
        for name in _PARTS:
            value = part.get(name)
            holder, key = (value, "url") if isinstance(value, dict) else (part, name)
            url = holder.get(key)
            if isinstance(url, str) and is_reference(url):
                slots.append(Slot(holder, key, parse_reference(url, name)))
    if len(slots) > MAX_REFERENCES:
        raise StreamFailure(
            "query_param_invalid", f"{len(slots)} references in one question; {MAX_REFERENCES} are allowed"
        )
    return slots


def put_pictures(slots: Sequence[Slot], chosen: Sequence[Sequence[Frame]]) -> int:
    """Put the frames chosen for each slot into its body, as the ``data:`` URLs that vLLM reads.

    Returns:
        Bytes of all pictures, as JPEG.

    Raises:
        StreamFailure: ``segment_invalid``, a frame that had to be given another size and cannot be decoded.
    """
    size_bytes = 0
    for slot, frames in zip(slots, chosen, strict=True):
        pictures = [frame.jpeg for frame in frames] if _is_even(frames) else list(_to_one_size(frames))
        size_bytes += sum(map(len, pictures))
        kind = "image" if isinstance(slot.reference, FrameReference) else "video"
        encoded = ",".join(base64.b64encode(picture).decode("ascii") for picture in pictures)
        slot.holder[slot.key] = f"data:{kind}/jpeg;base64,{encoded}"
    return size_bytes


def encoded_bytes(frames: Sequence[Frame]) -> int:
    """How long ``put_pictures`` makes them, nearly."""
    return sum(len(frame.jpeg) * 4 // 3 + 4 for frame in frames)


def _content_parts(body: Json) -> Iterator[Json]:
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict):
                yield part


def _is_even(frames: Sequence[Frame]) -> bool:
    return len({(frame.width, frame.height) for frame in frames}) == 1


def _to_one_size(frames: Sequence[Frame]) -> Iterator[bytes]:
    """A video has one size; a camera over WebRTC changes its own as the network allows. The newest one's is taken."""
    size = (frames[-1].width, frames[-1].height)
    for frame in frames:
        if (frame.width, frame.height) == size:
            yield frame.jpeg
        else:
            yield _resized(frame, size)


def _resized(frame: Frame, size: tuple[int, int]) -> bytes:
    """Of a pushed picture only the headers were looked at so far."""
    out = io.BytesIO()
    try:
        picture = Image.open(io.BytesIO(frame.jpeg), formats=["JPEG"])
        if picture.size != (frame.width, frame.height):  # two headers: what was measured is not what would be decoded
            raise ValueError("another size")
        picture.convert("RGB").resize(size).save(out, "JPEG", quality=85)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as problem:
        raise StreamFailure(
            "segment_invalid",
            f"frame {frame.index} is damaged, and has another size than the newest one; begin the segment behind it",
        ) from problem
    return out.getvalue()
