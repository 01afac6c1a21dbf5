"""What is said about an observation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.engine.chat.perception.facts import BLACK, BLACKOUT, MUTED, NORMAL, PICTURE, TEXT, UNHEARD

from vision_bench.answers.measured import read_measured
from vision_bench.engine.chat.perception.observation import Observation, measured_line, measurements, merged
from vision_bench.engine.chat.perception.text_on_screen import TextFacts
from vision_bench.engine.chat.perception.wording import (
    COLOURS_KO,
    FIELDS,
    INTRODUCTION,
    OUTLINES_KO,
    Language,
    describe,
    language_of,
    plain_text,
)

LANGUAGES: tuple[Language, Language] = ("en", "ko")
LIMITS = {"scene": 800, "speech": 800, "on_screen_text": 800, "summary": 400}


def _hangul(text: str) -> bool:
    return language_of(text) == "ko"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("seen", [NORMAL, BLACKOUT, MUTED, UNHEARD, Observation(None, None, None, "absent")])
def test_every_field_is_said_in_the_language_asked_for(seen: Observation, language: Language) -> None:
    """Four fields, none empty, each in one language, each within its limit."""
    fields = describe(seen, language)
    assert tuple(fields) == FIELDS
    for name, text in fields.items():
        assert 0 < len(text) <= LIMITS[name]
        own = text.partition("[measured: ")[0]
        assert _hangul(own) == (language == "ko") or own.startswith('"')


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_black_picture_is_said_to_be_black_and_the_sound_heard(language: Language) -> None:
    """The blackout check reads these words: black in the scene, 3.4 s of speech in the speech field."""
    fields = describe(BLACKOUT, language)
    assert {"en": "black", "ko": "검어서"}[language] in fields["scene"]
    assert {"en": "Speech is heard for 3.4 of 6.0 s", "ko": "3.4초 동안 말소리가 들립니다"}[language] in fields[
        "speech"
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_picture_and_sound_change_their_own_fields_alone(language: Language) -> None:
    """Normal and blackout agree in speech, normal and muted in scene and text; each pair differs in what changed."""
    normal, blackout, muted = (describe(seen, language) for seen in (NORMAL, BLACKOUT, MUTED))
    assert normal["speech"] == blackout["speech"] != muted["speech"]
    assert normal["scene"] == muted["scene"] != blackout["scene"]
    assert normal["on_screen_text"] == muted["on_screen_text"] != blackout["on_screen_text"]
    assert len({normal["summary"], blackout["summary"], muted["summary"]}) == 3


def test_sound_that_was_not_given_is_said_not_to_be() -> None:
    """Without use_audio_in_video nothing is claimed about the sound, not even silence."""
    fields = describe(UNHEARD, "en")
    assert "was not given" in fields["speech"]
    assert "speech_seconds" not in fields["summary"] and "silent_seconds" not in fields["summary"]


def test_the_measured_line_is_the_same_in_both_languages_and_reads_back() -> None:
    """The scorer's reader gets back every number, and the words that were read."""
    english, korean = (describe(NORMAL, language) for language in LANGUAGES)
    assert read_measured(english) == read_measured(korean)
    assert read_measured(english) == {
        "black_seconds": 0.0,
        "frozen_seconds": 0.0,
        "cuts": 1,
        "flashes": 1,
        "shapes": {"blue": 3, "red": 1},
        "frames": 12,
        "texts": 2,
        "unread": 1,
        "speech_seconds": 3.4,
        "silent_seconds": 0.4,
        "beeps": 1,
        "loudness_dbfs": -23.1,
        "latin_text": ["2", "3", "4", "BEARS", "INNING", "TIGERS"],
    }


def test_digital_silence_has_no_loudness() -> None:
    """No data is left out, never written as a number; no shapes are none."""
    assert "loudness_dbfs" not in measurements(MUTED)
    assert "shapes none;" in measured_line(BLACKOUT)


def test_quotes_in_read_text_do_not_end_it_early() -> None:
    """A double quote that was read becomes a single one, so the lines can be told apart."""
    text = TextFacts(('5" GUN', "LIVE"), 0)
    assert describe(replace(NORMAL, text=text), "en")["on_screen_text"] == '"5\' GUN"; "LIVE"'


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_of_credits_fits(language: Language) -> None:
    """Two hundred lines are cut at a whole line, and the rest is counted."""
    lines = tuple(f"Somebody Number {number}" for number in range(200))
    said = describe(replace(NORMAL, text=TextFacts(lines, 3, skipped_places=120)), language)["on_screen_text"]
    quoted = said.count('"') // 2
    assert len(said) <= 800 and said.count('"') % 2 == 0
    assert str(200 - quoted) in said and "120" in said


def test_unread_text_alone_is_said_and_nothing_is_made_of_it() -> None:
    """Hangul on the screen: writing is there, and no letters are claimed."""
    said = describe(replace(NORMAL, text=TextFacts((), 2)), "en")["on_screen_text"]
    assert said == "No Latin text is read. Text in 2 places could not be read (other script or too faint)."


def test_any_hangul_makes_an_answer_korean() -> None:
    """One Korean word in an English question is enough; other scripts are answered in English."""
    assert language_of("Describe 장면") == "ko"
    assert language_of("Describe the scene") == language_of("描述一下") == "en"


def test_every_colour_and_outline_has_a_korean_name() -> None:
    """Whatever can be counted can be said."""
    from vision_bench.engine.chat.perception.shapes import HUES

    assert {name for name, _ in HUES} | {"white"} == set(COLOURS_KO)
    assert set(OUTLINES_KO) == {"circle", "square", "triangle"}


def test_plain_text_holds_the_fields() -> None:
    """Without a schema the same four things stand on four lines."""
    fields = describe(NORMAL, "ko")
    lines = plain_text(fields, "ko").splitlines()
    assert [line.split(": ", 1)[1] for line in lines] == [fields[name] for name in FIELDS]


def test_the_introduction_is_honest() -> None:
    """It says that it is no language model, in both languages."""
    assert "not a language model" in INTRODUCTION["en"] and "언어 모델이 아니라" in INTRODUCTION["ko"]


def test_several_pictures_are_told_as_one() -> None:
    """A second clip's cut is counted from the start of the first; seconds add up; the greatest counts stay."""
    both = merged([PICTURE, BLACK, PICTURE])
    assert both is not None
    assert both.duration_seconds == 18.0 and both.black_seconds == 6.0 and both.frame_count == 36
    assert both.cut_seconds == pytest.approx((1.6, 13.6))
    assert both.colour_counts == {"blue": 3, "red": 1} and both.shapes == PICTURE.shapes
    assert both.brightness == PICTURE.brightness and not both.is_black
    assert merged([]) is None and merged([PICTURE]) is PICTURE


def test_the_text_of_no_picture_is_none() -> None:
    """A sound alone: nothing is said to be black."""
    fields = describe(Observation(None, None, NORMAL.sound, "heard"), "en")
    assert fields["scene"] == fields["on_screen_text"] == "No picture was sent."
    assert "black_seconds" not in fields["summary"] and TEXT.lines[0] not in fields["summary"]
