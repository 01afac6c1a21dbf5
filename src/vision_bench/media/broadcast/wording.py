"""Whether a text says a thing: the one rule that labels and scores share."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

NUMERALS = "영일이삼사오육칠팔구십백천만"


def plain(text: str) -> str:
    """``text`` in one spelling: compatibility forms folded, lower case, runs of space as one."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def says(text: str, wording: str) -> bool:
    """Whether ``text`` holds ``wording``, spaces apart, as a whole number or word.

    ``12`` is not in ``312``, ``이 년`` not in ``십이 년``, ``stork`` not in ``storks``. Other Hangul words are found
    wherever they stand, because particles and endings grow onto them.
    """
    wanted = plain(wording)
    if not wanted:
        return False
    pattern = re.escape(wanted[0])
    for before, letter in pairwise(re.sub(r"(?<![0-9]) | (?![0-9])", "", wanted)):
        # Spaces may stand anywhere but inside a number, and must stand between two: 영하 삼 도, 영하삼도; 1 1.
        loose = "" if letter == " " or before == " " or (before.isdigit() and letter.isdigit()) else r"\s*"
        pattern += loose + (r"\s+" if letter == " " else re.escape(letter))
    return re.search(_before(wanted[0]) + pattern + _after(wanted[-1]), plain(text)) is not None


def latin_words(text: str) -> list[str]:
    """Runs of Latin letters and of digits, upper case: ``TIME 02:10`` is TIME, 02, 10."""
    return re.findall(r"[A-Z]+|[0-9]+", text.upper())


def _before(letter: str) -> str:
    if letter.isdigit():
        return r"(?<![0-9])(?<![0-9][.,])(?<!-)"
    if letter in NUMERALS:
        return rf"(?<![{NUMERALS}])"
    return r"(?<![a-z])" if letter.isascii() and letter.isalpha() else ""


def _after(letter: str) -> str:
    if letter.isdigit():
        return r"(?![0-9]|[.,][0-9])"
    return r"(?![a-z])" if letter.isascii() and letter.isalpha() else ""
