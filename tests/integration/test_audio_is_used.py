"""Case M2: the flag is accepted, the answer is 200, and the sound never reaches the model. Is that noticed?

One window of a broadcast, as it is, blacked out and muted, is put to the baseline, which really looks and listens.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from vision_bench.answers.audio_control import Answer, audio_control
from vision_bench.answers.measured import read_measured
from vision_bench.answers.scoring import score_measured
from vision_bench.engine.chat.baseline import BaselineModel
from vision_bench.engine.chat.model import ChatRequest, MediaPart
from vision_bench.media.broadcast.genres import GENRES
from vision_bench.media.broadcast.labels import read_labels
from vision_bench.media.broadcast.make import make_broadcast
from vision_bench.media.clips import prepare_source
from vision_bench.media.layout import blackout_folder
from vision_bench.media.scene import CutSettings
from vision_bench.media.variants import muted

FIELDS = ("scene", "speech", "on_screen_text", "summary")
SCHEMA = {"type": "object", "properties": {name: {"type": "string"} for name in FIELDS}, "required": list(FIELDS)}
FPS = 2.0


class Versions(NamedTuple):
    """Three versions of one window, and its labels."""

    window: dict[str, Any]
    normal: bytes
    blackout: bytes
    muted: bytes


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Versions:
    """The first 6 s of a baseball broadcast, cut, blacked out and muted as the project does it."""
    folder = tmp_path_factory.mktemp("control")
    made = make_broadcast(GENRES["baseball"], folder / "raw", seconds=8)
    settings = CutSettings(start=Fraction(0), end=Fraction(6), encoder="libx264", jobs=1)
    clip = prepare_source(made.film, category="baseball", data_dir=folder, settings=settings).paths[0]
    black = blackout_folder(folder, "baseball", made.film.stem) / clip.name
    return Versions(_window(made.labels), clip.read_bytes(), black.read_bytes(), muted(clip))


def _window(labels: Path) -> dict[str, Any]:
    window: dict[str, Any] = read_labels(labels)["windows"][0]
    return window


@pytest.fixture(scope="module")
def model() -> Iterator[BaselineModel]:
    made = BaselineModel(workers=1)
    yield made
    made.close()


def _ask(model: BaselineModel, clip: bytes, *, use_audio_in_video: bool = True) -> Answer:
    """What the baseline answers to a clip, as four fields and as the measurements in them."""
    request = ChatRequest(
        request_id="m2",
        model="qwen",
        prompt="Describe the clip.",
        system="",
        media=(MediaPart("video", "video/mp4", clip),),
        max_tokens=1024,
        schema=SCHEMA,
        fps=FPS,
        use_audio_in_video=use_audio_in_video,
    )

    async def answer() -> str:
        prepared = await model.prepare(request)
        return "".join([token.text async for token in model.generate(request, prepared)])

    fields = json.loads(asyncio.run(answer()))
    return Answer(fields, read_measured(fields))


@pytest.fixture(scope="module")
def answers(versions: Versions, model: BaselineModel) -> tuple[Answer, Answer, Answer]:
    """What the baseline says to the normal, the black and the muted clip."""
    return _ask(model, versions.normal), _ask(model, versions.blackout), _ask(model, versions.muted)


def test_a_model_that_listens_passes(versions: Versions, answers: tuple[Answer, Answer, Answer]) -> None:
    """The blackout answer holds the facts that the normal one heard, the muted one none, and black shows nothing."""
    normal, blackout, silenced = answers
    verdict = audio_control(versions.window, normal=normal, blackout=blackout, muted=silenced)
    assert verdict.reasons == ()
    assert "beeps" in verdict.heard_blackout
    assert verdict.heard_blackout == verdict.heard_normal


def test_a_server_that_drops_the_sound_fails(versions: Versions, model: BaselineModel) -> None:
    """The same model, its sound withheld on the way, answers politely and fails the control."""
    normal, blackout = (_ask(model, clip, use_audio_in_video=False) for clip in (versions.normal, versions.blackout))
    verdict = audio_control(versions.window, normal=normal, blackout=blackout, muted=normal)
    assert not verdict.passed
    assert "does not reach the model" in "; ".join(verdict.reasons)


def test_an_answer_from_a_cache_fails(versions: Versions, answers: tuple[Answer, Answer, Answer]) -> None:
    """The normal clip's answer given to all three tells heard facts of the muted and seen ones of the black clip."""
    cached = answers[0]
    verdict = audio_control(versions.window, normal=cached, blackout=cached, muted=cached)
    reasons = "; ".join(verdict.reasons)
    assert "muted answer still tells" in reasons
    assert "which a black picture cannot show" in reasons


def test_the_baseline_measures_what_the_labels_say(versions: Versions, answers: tuple[Answer, Answer, Answer]) -> None:
    """Of the facts that 2 frames a second can show, it gets at least nine in ten right on a clean drawn clip."""
    scores = score_measured(answers[0].measured, versions.window, fps=FPS)
    values = [score.value for score in scores if score.value is not None]
    assert len(values) >= 7
    assert sum(values) / len(values) >= 0.9
