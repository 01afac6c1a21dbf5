"""When a text says a thing."""

from __future__ import annotations

import pytest

from vision_bench.media.broadcast.wording import says


@pytest.mark.parametrize(
    ("text", "wording", "is_said"),
    [
        ("구속 백 이십 오 킬로미터", "백이십오킬로미터", True),
        ("구속은 125 킬로미터였다", "125킬로미터", True),
        ("ONE BEARS 2:0 LIONS", "bears 2 : 0 lions", True),
        ("시속 1125 킬로미터", "125킬로미터", False),
        ("12.5 degrees", "12", False),
        ("2 12.5", "12", False),
        ("-12 degrees", "12", False),
        ("12 도, 맑음", "12", True),
        ("십이 년을 기다렸다", "이년", False),
        ("이 년을 기다렸다", "이년", True),
        ("storks fly", "stork", False),
        ("the Stork, alone", "stork", True),
        ("강하늘이 왔다", "강하늘", True),
        ("1 2", "12", False),
        ("12", "1 2", False),
        ("OUT 1 1", "out 1  1", True),
        ("anything", "  ", False),
    ],
)
def test_a_wording_is_found_whole(text: str, wording: str, is_said: bool) -> None:
    """Spaces do not matter between words; a number is never part of another, nor a Latin word of a longer one."""
    assert says(text, wording) is is_said
