"""What the headers of a JPEG tell. Nothing is decoded: that is the model's server's work."""

from __future__ import annotations

_STANDALONE = frozenset({0x01, *range(0xD0, 0xD8)})
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None for what is no whole JPEG, as far as its beginning, headers and end tell."""
    if not (data.startswith(b"\xff\xd8") and data.rstrip(b"\x00").endswith(b"\xff\xd9")):
        return None
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # a filler
            at += 1
        elif marker in _STANDALONE:
            at += 2
        elif marker in _FRAME_HEADERS and at + 2 + int.from_bytes(data[at + 2 : at + 4], "big") <= len(data) - 2:
            height, width = int.from_bytes(data[at + 5 : at + 7], "big"), int.from_bytes(data[at + 7 : at + 9], "big")
            return (width, height) if width and height else None
        else:
            length = int.from_bytes(data[at + 2 : at + 4], "big")
            if length < 2:
                return None
            at += 2 + length
    return None
