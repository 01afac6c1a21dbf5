"""One string that a regular expression matches in full, for grammars in structured answers."""

from __future__ import annotations

import re

_ESCAPES = {"d": "0", "w": "a", "s": " ", "n": "\n", "t": "\t"}


class UnsupportedPattern(ValueError):
    """A construct that no sample can be written for here: look-around, back-references, flags."""


def sample_of(pattern: str) -> str:
    """A short string that ``re.fullmatch(pattern, …)`` accepts.

    Reads literals, escapes, classes, groups, alternation and quantifiers; takes the first alternative and the fewest
    repetitions.

    Raises:
        UnsupportedPattern: anything else.
    """
    reader = _Reader(pattern)
    text = reader.alternatives()
    if reader.at < len(pattern) or re.fullmatch(pattern, text) is None:
        raise UnsupportedPattern(f"no sample can be written for the pattern {pattern!r}")
    return text


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise UnsupportedPattern(f"{self.pattern!r} ends in the middle")
        self.at += 1
        return char

    def alternatives(self) -> str:
        first = self._sequence()
        while self._peek() == "|":
            self.at += 1
            self._sequence()
        return first

    def _sequence(self) -> str:
        out = ""
        while self._peek() not in ("", "|", ")"):
            atom = self._atom()
            out += atom * self._fewest()
        return out

    def _atom(self) -> str:
        char = self._next()
        if char in "^$":
            return ""
        if char == ".":
            return "a"
        if char == "[":
            return self._one_of_class()
        if char == "\\":
            return self._escape()
        if char == "(":
            return self._group()
        return char

    def _group(self) -> str:
        if self._peek() == "?":
            self.at += 1
            if self._next() != ":":
                raise UnsupportedPattern(f"{self.pattern!r} has a special group at {self.at}")
        text = self.alternatives()
        if self._next() != ")":
            raise UnsupportedPattern(f"{self.pattern!r} has an open group")
        return text

    def _escape(self) -> str:
        char = self._next()
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char.isalnum():
            raise UnsupportedPattern(f"{self.pattern!r} has the escape \\{char}")
        return char

    def _one_of_class(self) -> str:
        start = self.at - 1
        if self._peek() == "^":
            self.at += 1
        if self._peek() == "]":
            self.at += 1
        while self._next() != "]":
            if self.pattern[self.at - 1] == "\\":
                self.at += 1
        allowed = re.compile(self.pattern[start : self.at])
        for code in (*range(ord("a"), ord("z") + 1), *range(32, 127), *range(0xAC00, 0xAC20)):
            if allowed.fullmatch(chr(code)):
                return chr(code)
        raise UnsupportedPattern(f"{self.pattern!r} has a class without a printable letter")

    def _fewest(self) -> int:
        char = self._peek()
        fewest = 1
        if char in ("*", "?"):
            self.at += 1
            fewest = 0
        elif char == "+":
            self.at += 1
        elif char == "{":
            found = re.match(r"\{(\d+)?(,)?(\d+)?\}", self.pattern[self.at :])
            if found is None:
                return 1
            self.at += found.end()
            fewest = int(found.group(1) or 0)
        if char and char in "*?+{" and self._peek() == "?":  # lazy: the same strings
            self.at += 1
        return fewest
