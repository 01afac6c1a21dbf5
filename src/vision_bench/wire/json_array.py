"""The objects of one array in a JSON object, each as its bytes, as soon as its last byte has come.

For a body such as ``{"items": [{...}, {...}]}`` that is too large to wait for. The scanner finds where objects begin
and end; it judges nothing. What is in an object, and whether the rest was JSON at all, is for a parser to say, which
gets the object's own bytes and, at the end, the ``skeleton``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

_QUOTE, _BACKSLASH = b'"', 0x5C
_ENVELOPE = re.compile(rb'["{}\[\]:,]')
_BRACKETS = re.compile(rb"[{}\[\]]")
_NEITHER_SPACE_NOR_COMMA = re.compile(rb"[^ \t\r\n,]")
_LONGEST_KEY_BYTES = 1024
_BLOCK_BYTES = 4096


class ArrayScanner:
    """Bytes in, whole objects of the array under ``key`` out, however the bytes were chunked.

    An element that is no object ends the search: from there on everything belongs to the skeleton. So does a second
    array under the same key, and what lies behind ``most_around_bytes``.

    Args:
        most: the search ends with the first object over this number.
        most_around_bytes: no more than this is searched of what stands around the objects. Nobody needs much there, and
            it costs a step a letter.

    Attributes:
        count: objects found so far.
    """

    def __init__(self, key: str, *, most: int, most_around_bytes: int) -> None:
        self._key = key
        self._most = most
        self._most_around_bytes = most_around_bytes
        self.count = 0
        self._skeleton = bytearray()
        self._text = bytearray()
        self._begin = 0  # where what has not been given away begins
        self._at = 0  # how far it has been looked at
        self._step: Callable[[list[bytes]], bool] = self._in_envelope
        self._depth = 0  # brackets open: in the whole, or, inside an element, in that
        self._is_string = False
        self._string_begin = 0
        self._name: bytes | None = None  # the last string of the outermost object; before a colon it is a name
        self._is_wanted = False  # the next value stands under the key

    @property
    def skeleton(self) -> bytes:
        """Everything fed but the objects found, with ``{}`` in their places: JSON if and only if all around them is."""
        return bytes(self._skeleton + self._text[self._begin :])

    @property
    def is_too_much_around(self) -> bool:
        """More than ``most_around_bytes`` is known to stand around the objects."""
        around_bytes = len(self._skeleton)
        if self._step != self._in_element:
            around_bytes += len(self._text) - self._begin
        return around_bytes > self._most_around_bytes

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """The objects that ``data`` completes."""
        self._text += data
        found: list[bytes] = []
        while self.count <= self._most and self._step(found):
            pass
        if self._begin:
            del self._text[: self._begin]
            self._at -= self._begin
            self._string_begin -= self._begin
            self._begin = 0
        return found

    def _in_envelope(self, _found: list[bytes]) -> bool:
        """Look at one bracket, string or mark outside the array. Every step says whether another may follow now."""
        if self._is_string:
            if not self._skip_string():
                return False
            if self._depth == 1:
                self._name = bytes(self._text[self._string_begin : self._at])
            return True
        if len(self._skeleton) + self._at - self._begin > self._most_around_bytes:
            self._step = self._in_skeleton
            return True
        mark = _ENVELOPE.search(self._text, self._at)
        if mark is None:
            self._at = len(self._text)
            return False
        self._at = mark.end()
        letter = mark[0]
        if letter == _QUOTE:
            self._is_string, self._string_begin = True, mark.start()
        elif letter in b"{[":
            self._open(letter)
        elif letter in b"}]":
            self._depth -= 1
            if self._depth <= 0:
                self._step = self._in_skeleton
        elif self._depth == 1:
            self._is_wanted = letter == b":" and self._is_key(self._name)
            self._name = None
        return True

    def _open(self, letter: bytes) -> None:
        if self._depth == 0 and letter != b"{":
            self._step = self._in_skeleton
        if self._depth == 1 and self._is_wanted and letter == b"[":
            # Two arrays under one name: a parser takes the last, and we have given away the first.
            self._step = self._in_skeleton if self.count else self._in_array
        self._depth += 1

    def _is_key(self, name: bytes | None) -> bool:
        if name is None or len(name) > _LONGEST_KEY_BYTES:
            return False
        try:
            return bool(json.loads(name) == self._key)
        except ValueError:
            return False

    def _in_array(self, _found: list[bytes]) -> bool:
        """Look for the next element, or the end of the array."""
        mark = _NEITHER_SPACE_NOR_COMMA.search(self._text, self._at)
        if mark is None:
            self._at = len(self._text)
            return False
        self._at = mark.end()
        if mark[0] == b"{":
            self._skeleton += self._text[self._begin : mark.start()]
            self._begin = mark.start()
            self._depth = 1
            self._step = self._in_element
        elif mark[0] == b"]":
            self._depth = 1
            self._is_wanted = False
            self._step = self._in_envelope
        else:
            self._step = self._in_skeleton
        return True

    def _in_element(self, found: list[bytes]) -> bool:
        """Look for the end of the object that began at ``_begin``."""
        if self._is_string and not self._skip_string():
            return False
        # A block at a time: to the end of the text, the same bytes would be looked at for every short object anew.
        block_end = min(self._at + _BLOCK_BYTES, len(self._text))
        quote = self._text.find(_QUOTE, self._at, block_end)
        stop = quote if quote >= 0 else block_end
        end = self._end_of_object(stop)
        if end is not None:
            with memoryview(self._text) as text:
                found.append(bytes(text[self._begin : end]))
            self._skeleton += b"{}"
            self.count += 1
            self._begin = self._at = end
            self._depth = 2
            self._step = self._in_array
            return True
        if quote < 0:
            self._at = stop
            return stop < len(self._text)
        self._is_string, self._at = True, quote + 1
        return True

    def _end_of_object(self, stop: int) -> int | None:
        """Count brackets up to ``stop``, between which there is no string; where the last one closes."""
        text, at = self._text, self._at
        closing = text.count(b"}", at, stop) + text.count(b"]", at, stop)
        if closing < self._depth:
            self._depth += text.count(b"{", at, stop) + text.count(b"[", at, stop) - closing
            return None
        for mark in _BRACKETS.finditer(text, at, stop):
            self._depth += 1 if mark[0] in b"{[" else -1
            if self._depth == 0:
                return mark.end()
        return None

    def _in_skeleton(self, _found: list[bytes]) -> bool:
        self._at = len(self._text)
        return False

    def _skip_string(self) -> bool:
        """Go behind the quote that ends the string. A quote counts unless an odd number of backslashes precedes it."""
        while True:
            quote = self._text.find(_QUOTE, self._at)
            if quote < 0:
                self._at = len(self._text)
                return False
            self._at = quote + 1
            before = quote
            while before > self._begin and self._text[before - 1] == _BACKSLASH:
                block = self._text[max(self._begin, before - _BLOCK_BYTES) : before]
                before -= len(block) - len(block.rstrip(b"\\"))
            if (quote - before) % 2 == 0:
                self._is_string = False
                return True
