"""Laws of scoring."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vision_bench.answers.scoring import cer, edit_distance, token_f1

words = st.lists(st.sampled_from("abc"), max_size=8)


@given(words, words)
def test_f1_is_even_handed_and_full_only_for_the_same_bag(expected: list[str], got: list[str]) -> None:
    """Swapping sides changes nothing; 1.0 means the same tokens as often."""
    assert token_f1(expected, got) == token_f1(got, expected)
    if expected or got:
        assert (token_f1(expected, got) == 1.0) is (sorted(expected) == sorted(got))


@given(words, words, words)
def test_edit_distance_is_a_distance(a: list[str], b: list[str], c: list[str]) -> None:
    """Zero only for equals, the same both ways, and no detour is shorter."""
    assert (edit_distance(a, b) == 0) is (a == b)
    assert edit_distance(a, b) == edit_distance(b, a)
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)


@given(st.text(alphabet="가나다 abc", max_size=10))
def test_a_text_has_no_error_against_itself(text: str) -> None:
    """CER is 0, or None where nothing was expected."""
    assert cer(text, text) == (0.0 if text.strip() else None)
