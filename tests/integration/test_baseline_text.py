"""Reading drawn titles with the real networks: Latin letters and digits are read, Hangul never becomes letters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.unit.engine.chat.perception.pictures import scenery, titled

from vision_bench.engine.chat.perception.text_on_screen import MOST_PLACES, TextReader

LATIN = (
    "TIGERS 3 : 2 EAGLES",
    "INNING 4  BALL 2  STRIKE 1",
    "LIVE NEWS 9",
    "Seoul coast",
    "FIRST BLOOD",
    "TIME 02:10",
    "EPISODE 16",
    "MISSION 7",
)
HANGUL = (
    "이리",
    "이모",
    "대구",
    "일",
    "안녕하세요",
    "서울 지하철",
    "부산 앞바다 지진",
    "위대한 고래",
    "무료 스포츠",
    "폭소 만발",
    "궁예와 견훤",
    "줄다리기 우승",
    "타이거즈 공격",
    "늦은 밤, 집",
)
"""The first four are words of whose pieces the recogniser alone makes 0|, 0, 947 and u."""

CANVAS = np.kron(scenery(6), np.ones((2, 2, 1), np.uint8))
"""A scene of 640x360."""


@pytest.fixture(scope="module")
def reader() -> Iterator[TextReader]:
    yield TextReader()


@pytest.mark.parametrize("pixels", [20, 36])
def test_latin_titles_are_read_letter_by_letter(reader: TextReader, pixels: int) -> None:
    """Every title as it stands, at the size of a count and of a score board in 360 lines."""
    for text in LATIN:
        facts = reader.read([titled(CANVAS, text, pixels=pixels, at=(60, 120))])
        assert ["".join(line.split()) for line in facts.lines] == ["".join(text.split())]
        assert facts.unread_places == 0


@pytest.mark.parametrize("pixels", [20, 36])
def test_hangul_titles_are_seen_and_never_read_as_letters(reader: TextReader, pixels: int) -> None:
    """No title gives a letter or digit, and every one is reported as writing that was not read."""
    facts = {text: reader.read([titled(CANVAS, text, pixels=pixels, at=(60, 120))]) for text in HANGUL}
    assert {text: found.lines for text, found in facts.items() if found.lines} == {}
    unseen = [text for text, found in facts.items() if found.unread_places == 0]
    assert len(unseen) <= 2, unseen  # one or two short words a size are too faint for the detector's score


def test_a_mixed_title_keeps_what_is_latin(reader: TextReader) -> None:
    """The score of a line with Hangul in it is read; the place counts as not wholly read."""
    facts = reader.read([titled(CANVAS, "WYVERNS 3 : 2 TIGERS  공격", pixels=30, at=(40, 120))])
    assert len(facts.lines) == 1 and facts.unread_places == 1
    assert facts.lines[0].startswith("WYVERNS 3") and "TIGERS" in facts.lines[0] and facts.lines[0].endswith("…")


def test_scenery_holds_no_text(reader: TextReader) -> None:
    """No frame, a black one and clouds: nothing read, nothing unread."""
    for frames in ([], [np.zeros_like(CANVAS)], [CANVAS]):
        facts = reader.read(frames)
        assert facts.lines == () and facts.unread_places == 0 and facts.skipped_places == 0


def test_a_line_on_two_frames_is_one_line(reader: TextReader) -> None:
    """The same title twice is told once; another is added in the order seen."""
    first, second = (titled(CANVAS, text, pixels=30, at=(60, 120)) for text in ("EPISODE 16", "LIVE NEWS 9"))
    assert reader.read([first, second, first]).lines == ("EPISODE 16", "LIVE NEWS 9")


def test_a_page_of_names_is_read_up_to_a_bound(reader: TextReader) -> None:
    """Of 30 names the tallest 24 are read, and six are said to be left."""
    page = np.zeros((720, 960, 3), np.uint8)
    for number in range(30):
        row, column = divmod(number, 3)
        page = titled(page, f"NAME{number:02d}", pixels=26, at=(40 + 320 * column, 30 + 68 * row))
    facts = reader.read([page])
    assert len(facts.lines) == MOST_PLACES and facts.skipped_places == 6
