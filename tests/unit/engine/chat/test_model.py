"""What models share."""

from __future__ import annotations

from vision_bench.engine.chat.model import pieces


def test_pieces_of_a_sentence_are_words_with_their_blank() -> None:
    """Long words fall into pieces of about four letters."""
    assert pieces("a long meadow") == ["a", " long", " mead", "ow"]


def test_empty_text_has_no_piece() -> None:
    """Nothing is not one empty token."""
    assert pieces("") == []
