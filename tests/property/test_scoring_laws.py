"""Laws of scoring."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vision_bench.answers.scoring import cer, token_f1, wer

words = st.lists(st.sampled_from("abc"), max_size=8)


@given(words, words)
def test_f1_is_even_handed_and_full_only_for_the_same_bag(expected: list[str], got: list[str]) -> None:
    """Swapping sides changes nothing; 1.0 means the same tokens as often."""
    assert token_f1(expected, got) == token_f1(got, expected)
    if expected or got:
        assert (token_f1(expected, got) == 1.0) is (sorted(expected) == sorted(got))


def levenshtein(reference: list[str], reading: list[str]) -> int:
    """By its definition, slowly: the last tokens are kept, replaced, added or left out."""
    if not reference or not reading:
        return len(reference) + len(reading)
    replaced = levenshtein(reference[:-1], reading[:-1]) + (reference[-1] != reading[-1])
    return min(replaced, levenshtein(reference[:-1], reading) + 1, levenshtein(reference, reading[:-1]) + 1)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), st.lists(st.sampled_from("abc"), max_size=4))
def test_error_rates_are_edits_per_expected_token(reference: list[str], reading: list[str]) -> None:
    """Of words and of letters alike, by the definition; spaces cost no letter."""
    rate = levenshtein(reference, reading) / len(reference)
    assert abs((wer(" ".join(reference), " ".join(reading)) or 0.0) - rate) < 1e-12
    assert abs((cer("".join(reference), " ".join(reading)) or 0.0) - rate) < 1e-12


@given(st.text(alphabet="가나다 abc", max_size=10))
def test_a_text_has_no_error_against_itself(text: str) -> None:
    """CER is 0, or None where nothing was expected."""
    assert cer(text, text) == (0.0 if text.strip() else None)
