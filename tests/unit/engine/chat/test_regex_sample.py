"""Strings for patterns."""

from __future__ import annotations

import re

import pytest

from vision_bench.engine.chat.regex_sample import UnsupportedPattern, sample_of


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "abc",
        "[0-9]{3}",
        "a|b",
        "(yes|no)!",
        "(?:ab)+c*d?",
        "[^a-z]x",
        "[]a]",
        r"[\]\-]b",
        r"\d\w\s\.",
        ".{2,5}",
        "a{,3}b",
        "x{0}y",
        "a+?b",
        "^whole$",
        "[가-힣]{2}",
        "((a|b)c){2}",
        "a{b",
    ],
)
def test_sample_matches_in_full(pattern: str) -> None:
    """Python's own engine says so."""
    assert re.fullmatch(pattern, sample_of(pattern))


@pytest.mark.parametrize("pattern", ["(?=a)a", r"(a)\1", "a\\", "(a", r"\bword", "[a"])
def test_what_cannot_be_read_is_refused(pattern: str) -> None:
    """No wrong string is ever given instead."""
    with pytest.raises((UnsupportedPattern, re.error)):
        sample_of(pattern)
