"""Observations made up for tests of what is said about them."""

from __future__ import annotations

from dataclasses import replace

from vision_bench.engine.chat.perception.observation import Observation
from vision_bench.engine.chat.perception.picture import PictureFacts
from vision_bench.engine.chat.perception.shapes import ShapeCount
from vision_bench.engine.chat.perception.sound import SoundFacts, Span
from vision_bench.engine.chat.perception.text_on_screen import TextFacts

PICTURE = PictureFacts(
    frame_count=12,
    width=640,
    height=360,
    duration_seconds=6.0,
    black_seconds=0.0,
    frozen_seconds=0.0,
    cut_seconds=(1.6,),
    flash_seconds=(2.2,),
    brightness=88.0,
    motion=0.31,
    shapes=(ShapeCount("blue", "circle", 3), ShapeCount("red", "square", 1)),
    colour_counts={"blue": 3, "red": 1},
    is_black=False,
    worth_reading=(0,),
)
BLACK = replace(
    PICTURE,
    black_seconds=6.0,
    cut_seconds=(),
    flash_seconds=(),
    brightness=None,
    motion=None,
    shapes=(),
    colour_counts={},
    is_black=True,
    worth_reading=(),
)
TEXT = TextFacts(("TIGERS 3 : 2 BEARS", "INNING 4"), unread_places=1)
NO_TEXT = TextFacts((), unread_places=0)
SPEECH = SoundFacts(6.0, 0.4, -23.06, -4.0, (2.2,), (Span(0.5, 2.0), Span(3.0, 4.9)))
SILENCE = SoundFacts(6.0, 6.0, None, None, (), ())

NORMAL = Observation(PICTURE, TEXT, SPEECH, "heard")
BLACKOUT = Observation(BLACK, NO_TEXT, SPEECH, "heard")
MUTED = Observation(PICTURE, TEXT, SILENCE, "heard")
UNHEARD = Observation(PICTURE, TEXT, None, "withheld")
