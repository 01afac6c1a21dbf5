"""espeak-ng through its library."""

from __future__ import annotations

import numpy as np
import pytest

from vision_bench.errors import MissingTool
from vision_bench.media.broadcast.speech import Espeak, find_espeak


@pytest.fixture(scope="module")
def espeak() -> Espeak:
    found = find_espeak()
    assert found is not None, "install 'vision-bench[broadcast]'"
    return found


def test_a_sentence_is_sound_of_its_length(espeak: Espeak) -> None:
    """A Korean sentence takes seconds, is loud at its peak, and a longer one takes longer."""
    short = espeak.say("안녕하세요.", "ko")
    long = espeak.say("안녕하세요. 오늘의 주요 소식을 전해 드리겠습니다.", "ko")
    assert 0.4 < len(short) / espeak.rate < 3
    assert len(long) > 2 * len(short)
    assert np.abs(short).max() == pytest.approx(0.55, abs=0.01)


def test_a_sentence_does_not_depend_on_what_was_said_before(espeak: Espeak) -> None:
    """Same text, same voice, same samples, also after another voice has spoken; two voices differ."""
    first = espeak.say("Good evening.", "en-us+f2")
    espeak.say("상금 삼 만 원!", "ko+m2")
    assert np.array_equal(first, espeak.say("Good evening.", "en-us+f2"))
    assert not np.array_equal(first, espeak.say("Good evening.", "en-us+m3"))


def test_a_voice_that_is_not_there_is_named(espeak: Espeak) -> None:
    """The error holds the voice."""
    with pytest.raises(MissingTool, match="'nobody'"):
        espeak.say("hello", "nobody")


def test_text_without_sound_is_an_error(espeak: Espeak) -> None:
    """A sentence that makes no sound would be a label of something nobody can hear."""
    with pytest.raises(MissingTool, match="no sound"):
        espeak.say(" ", "ko")


def test_a_library_that_does_not_load_is_named() -> None:
    """The error holds its path."""
    with pytest.raises(MissingTool, match=r"/no/such/lib\.so"):
        Espeak("/no/such/lib.so", None)
