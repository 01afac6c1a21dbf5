"""Korean numbers and particles."""

from __future__ import annotations

import pytest

from vision_bench.media.broadcast.words import joined, sino_korean


@pytest.mark.parametrize(
    ("number", "read"),
    [
        (0, "영"),
        (7, "칠"),
        (10, "십"),
        (15, "십오"),
        (20, "이십"),
        (100, "백"),
        (125, "백이십오"),
        (1004, "천사"),
        (-3, "영하 삼"),
    ],
)
def test_numbers_are_read_as_koreans_read_them(number: int, read: str) -> None:
    """A one before 십, 백 and 천 is silent; below zero is 영하."""
    assert sino_korean(number) == read


@pytest.mark.parametrize(("word", "subject"), [("곰", "곰이"), ("사자", "사자가"), ("TIGER", "TIGER가")])
def test_the_particle_follows_the_last_sound(word: str, subject: str) -> None:
    """이 after a final consonant, 가 after a vowel and after anything that is no Hangul."""
    assert joined(word, "이", "가") == subject
