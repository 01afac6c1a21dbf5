"""The control that tells whether sound is used."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.answers.audio_control import Answer, audio_control

WINDOW: dict[str, Any] = {
    "clip": "0001_0000-0006",
    "audio_only": [{"fact": "reporter", "value": "한소리", "accept": ["한소리", "Han Sori"]}],
    "video_only": [{"fact": "logo", "value": "LIVE NEWS 9", "accept": ["LIVE NEWS 9"]}],
    "measurable": {
        "audio": {
            "beeps": {"value": 2, "tolerance": 0},
            "speech_seconds": {"value": 3.0, "tolerance": 1.0},
            "silent_seconds": {"value": 5.9, "tolerance": 0.3},
        },
        "video": {
            "flashes": {"value": 1, "tolerance": 0},
            "shapes": {"value": {"red": 3}, "optional": {}},
            "latin_text": {"value": ["9", "LIVE", "NEWS"], "optional": []},
        },
    },
}
BOTH = Answer({"speech": "한소리 기자입니다", "on_screen_text": "LIVE NEWS 9"})
HEARD = Answer({"speech": "한소리 기자입니다", "on_screen_text": ""})
SEEN = Answer({"speech": "", "on_screen_text": "LIVE NEWS 9"})
NOTHING = Answer({"speech": "", "on_screen_text": ""})


def test_a_model_that_hears_passes() -> None:
    """Normal tells both, blackout what is heard, muted what is seen."""
    verdict = audio_control(WINDOW, normal=BOTH, blackout=HEARD, muted=SEEN)
    assert verdict.passed
    assert verdict.heard_blackout == ("reporter",)
    assert verdict.heard_muted == ()


@pytest.mark.parametrize(
    ("normal", "blackout", "muted", "reason"),
    [
        (BOTH, NOTHING, SEEN, "does not reach the model"),
        (BOTH, HEARD, BOTH, "muted answer still tells reporter"),
        (BOTH, BOTH, SEEN, "tells logo, which a black picture cannot show"),
        (SEEN, HEARD, SEEN, "normal answer holds none"),
    ],
)
def test_it_fails_loudly(normal: Answer, blackout: Answer, muted: Answer, reason: str) -> None:
    """A deaf model, a planted answer, a cached answer and a normal answer without sound each get their reason."""
    verdict = audio_control(WINDOW, normal=normal, blackout=blackout, muted=muted)
    assert not verdict.passed
    assert reason in "; ".join(verdict.reasons)


def test_measured_facts_count_as_heard() -> None:
    """A perceiver without words passes by what it measures: beeps and speech with a black picture, none muted."""
    normal = Answer({}, {"beeps": 2, "speech_seconds": 2.7, "silent_seconds": 5.9, "flashes": 1})
    blackout = Answer({}, {"beeps": 2, "speech_seconds": 2.7, "silent_seconds": 5.9, "flashes": 0, "shapes": {}})
    muted = Answer({}, {"beeps": 0, "speech_seconds": 0.0, "silent_seconds": 6.0, "flashes": 1})
    verdict = audio_control(WINDOW, normal=normal, blackout=blackout, muted=muted)
    assert verdict.passed
    assert verdict.heard_blackout == ("beeps", "speech_seconds")


def test_what_the_muted_clip_measures_too_proves_nothing() -> None:
    """5.9 silent seconds are within reach of the muted clip's 6.0: naming them is no proof of hearing."""
    deaf = Answer({}, {"beeps": 0, "speech_seconds": 0.0, "silent_seconds": 6.0})
    verdict = audio_control(WINDOW, normal=deaf, blackout=deaf, muted=deaf)
    assert verdict.heard_normal == ()
    assert not verdict.passed


def test_a_measured_picture_in_the_blackout_answer_fails() -> None:
    """Counting the shapes of a black picture means that the answer is another clip's."""
    normal = Answer({}, {"beeps": 2, "shapes": {"red": 3}})
    muted = Answer({}, {"beeps": 0, "shapes": {"red": 3}})
    verdict = audio_control(WINDOW, normal=normal, blackout=normal, muted=muted)
    assert verdict.seen_blackout == ("shapes",)
    assert not verdict.passed


def test_a_window_without_heard_facts_decides_nothing() -> None:
    """The control does not pass by having nothing to ask."""
    silent = {**WINDOW["measurable"], "audio": {"silent_seconds": {"value": 6.0, "tolerance": 0.3}}}
    window = {**WINDOW, "audio_only": [], "measurable": silent}
    verdict = audio_control(window, normal=BOTH, blackout=HEARD, muted=SEEN)
    assert not verdict.passed
    assert "choose another" in verdict.reasons[0]
