"""The baseline behind the engine's wire: what it sees and hears of a clip, and what it does not."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.integration.engine_rig import EngineRig, events, serving
from tests.unit.engine.chat.perception.pictures import scenery, titled, with_shapes
from tests.unit.media.drawn_clips import RATE, drawn_clip, tone

from vision_bench.answers.analysis import PROMPTS, analysis_schema
from vision_bench.answers.measured import read_measured
from vision_bench.engine.chat.baseline import BaselineModel
from vision_bench.media.broadcast.speech import find_espeak
from vision_bench.media.encode import data_uri, jpeg, wav

FPS, SECONDS = 12, 4
TITLE = "SCORE 3 : 2"
SCHEMA = {"type": "json_schema", "json_schema": {"name": "clip_analysis", "strict": True, "schema": analysis_schema()}}


@cache
def spoken() -> np.ndarray:
    """Four seconds: a beep at 0.5 s, then a sentence, over a room's murmur."""
    sound = np.random.default_rng(2).normal(0, 0.004, SECONDS * RATE).astype(np.float32)
    sound[RATE // 2 : RATE // 2 + 1600] += tone(1000, 0.1, level=0.4)
    voice = find_espeak()
    assert voice is not None, "install 'vision-bench[broadcast]'"
    sentence = voice.say("Good evening from Seoul, the game goes on tonight.", "en-us+m3")
    places = np.arange(round(len(sentence) * RATE / voice.rate)) * voice.rate / RATE
    said = np.interp(places, np.arange(len(sentence)), sentence).astype(np.float32)[: 3 * RATE]
    sound[RATE : RATE + len(said)] += said
    return np.clip(sound, -1, 1)


def pictures() -> list[np.ndarray]:
    """Two places, 2 s each, the second with a title and three blue squares; one white frame at 0.75 s."""
    frames = [np.kron(scenery(1, shift=2 * number), np.ones((2, 2, 1), np.uint8)) for number in range(24)]
    frames[9] = np.full_like(frames[9], 250)
    for number in range(24):
        place = with_shapes(scenery(2, shift=2 * number), "square", "blue", 3, y=110)
        frames.append(titled(np.kron(place, np.ones((2, 2, 1), np.uint8)), TITLE, pixels=34, at=(40, 30)))
    return frames


@cache
def clip() -> bytes:
    return drawn_clip(pictures(), fps=FPS, samples=spoken())


@cache
def blackout() -> bytes:
    return drawn_clip([np.zeros((360, 640, 3), np.uint8)] * FPS * SECONDS, fps=FPS, samples=spoken())


@cache
def muted() -> bytes:
    return drawn_clip(pictures(), fps=FPS, samples=np.zeros(SECONDS * RATE, np.float32))


@cache
def silent_film() -> bytes:
    """No sound track at all."""
    return drawn_clip(pictures(), fps=FPS)


@pytest.fixture(scope="module")
def model() -> Any:
    made = BaselineModel(workers=2)
    yield made
    made.close()


@pytest.fixture(scope="module")
def normal(model: BaselineModel) -> dict[str, str]:
    """What it says of the clip, asked once: the same question has the same answer (a test of its own)."""

    async def asked() -> dict[str, str]:
        async with serving(model) as running:
            return await ask(running, part(clip()))

    return asyncio.run(asked())


@pytest.fixture
async def rig(model: BaselineModel) -> AsyncIterator[EngineRig]:
    async with serving(model) as running:
        yield running


def part(data: bytes, media_type: str = "video/mp4") -> dict[str, Any]:
    kind = media_type.split("/", maxsplit=1)[0] + "_url"
    return {"type": kind, kind: {"url": data_uri(data, media_type)}}


def body(*parts: dict[str, Any], prompt: str = PROMPTS["en"], sound: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "model": "qwen",
        "messages": [{"role": "user", "content": [*parts, {"type": "text", "text": prompt}]}],
        "max_tokens": 1024,
        "response_format": SCHEMA,
        "mm_processor_kwargs": {"use_audio_in_video": sound},
        **more,
    }


async def ask(rig: EngineRig, *parts: dict[str, Any], **more: Any) -> dict[str, str]:
    """The four fields."""
    reply = await rig.ask(body(*parts, **more))
    assert reply.status_code == 200, reply.text
    choice = reply.json()["choices"][0]
    assert choice["finish_reason"] == "stop"
    fields: dict[str, str] = json.loads(choice["message"]["content"])
    return fields


async def test_it_sees_and_hears_what_is_there(rig: EngineRig) -> None:
    """At 12 frames a second: one cut, one flash, three blue squares, the title, the beep and the sentence."""
    fields = await ask(rig, part(clip()), media_io_kwargs={"video": {"fps": FPS}})
    measured = read_measured(fields)
    assert (measured["cuts"], measured["flashes"], measured["shapes"], measured["beeps"]) == (1, 1, {"blue": 3}, 1)
    assert measured["latin_text"] == ["2", "3", "SCORE"]
    assert 1.5 < measured["speech_seconds"] < 3.2
    assert measured["black_seconds"] == measured["frozen_seconds"] == 0


async def test_picture_and_sound_are_told_apart(rig: EngineRig, normal: dict[str, str]) -> None:
    """M2: blacked out, only what is seen changes; muted, only what is heard does; both change the summary."""
    black, quiet = [await ask(rig, part(made())) for made in (blackout, muted)]
    assert black["speech"] == normal["speech"] != quiet["speech"]
    assert quiet["scene"] == normal["scene"] != black["scene"]
    assert quiet["on_screen_text"] == normal["on_screen_text"] != black["on_screen_text"]
    assert len({fields["summary"] for fields in (normal, black, quiet)}) == 3
    assert "black for all 4.0 s" in black["scene"] and TITLE not in black["on_screen_text"]
    assert read_measured(black)["beeps"] == 1 and read_measured(quiet)["beeps"] == 0
    assert read_measured(quiet)["silent_seconds"] == pytest.approx(SECONDS, abs=0.2)


async def test_sound_is_heard_only_when_asked_for(rig: EngineRig, normal: dict[str, str]) -> None:
    """Without use_audio_in_video the answer says that no sound was given; the picture is told as before."""
    without = await ask(rig, part(clip()), sound=False)
    assert without["scene"] == normal["scene"]
    assert "was not given" in without["speech"] and "beeps" not in read_measured(without)


async def test_a_sound_sent_beside_the_video_is_heard(rig: EngineRig, normal: dict[str, str]) -> None:
    """A WAV of its own tells the same beep and speech as the track inside the clip."""
    beside = await ask(rig, part(silent_film()), part(wav(spoken(), RATE), "audio/wav"), sound=False)
    inside = read_measured(normal)
    measured = read_measured(beside)
    assert measured["beeps"] == inside["beeps"] == 1
    assert measured["speech_seconds"] == pytest.approx(inside["speech_seconds"], abs=0.2)


async def test_refusals_are_vllm_s(rig: EngineRig) -> None:
    """No sound track, no picture, and bytes that are no file: 400 in vLLM's words."""
    cases = {
        "No audio stream found.": part(silent_film()),
        "Could not open video stream": part(b"\1\2\3" * 500),
    }
    for message, sent in cases.items():
        reply = await rig.ask(body(sent))
        assert (reply.status_code, reply.json()["error"]["message"]) == (400, message)
    reply = await rig.ask(body(part(wav(tone(440, 1.0), RATE), "video/mp4"), sound=False))
    assert (reply.status_code, reply.json()["error"]["message"]) == (400, "Could not open video stream")


async def test_the_rate_governs_what_is_seen(rig: EngineRig) -> None:
    """A white frame of 83 ms is seen at 12 frames a second and missed at 1; num_frames changes nothing for a file."""
    slow = read_measured(await ask(rig, part(clip()), media_io_kwargs={"video": {"fps": 1}}))
    fast = read_measured(await ask(rig, part(clip()), media_io_kwargs={"video": {"fps": FPS}}))
    counted = read_measured(await ask(rig, part(clip()), media_io_kwargs={"video": {"num_frames": 32}}))
    assert (slow["frames"], slow["flashes"]) == (4, 0)
    assert (fast["frames"], fast["flashes"]) == (48, 1)
    assert counted["frames"] == 8  # 2 frames a second, as if it had not been asked


async def test_pixels_govern_what_can_be_read(rig: EngineRig) -> None:
    """At 80x45 nobody reads the title; the cut is still seen."""
    measured = read_measured(
        await ask(rig, part(clip()), mm_processor_kwargs={"use_audio_in_video": True, "max_pixels": 3600})
    )
    assert measured["latin_text"] == [] and measured["cuts"] == 1


async def test_frames_sent_as_jpegs_are_counted(rig: EngineRig) -> None:
    """data:video/jpeg takes num_frames at its word: four of eight, else all."""
    frames = [jpeg(frame) for frame in pictures()[::6]]
    payload = ",".join(data_uri(frame, "image/jpeg").partition(",")[2] for frame in frames)
    sent = {"type": "video_url", "video_url": {"url": f"data:video/jpeg;base64,{payload}"}}
    every = read_measured(await ask(rig, sent, sound=False))
    four = read_measured(await ask(rig, sent, sound=False, media_io_kwargs={"video": {"num_frames": 4}}))
    assert (every["frames"], four["frames"]) == (8, 4)
    assert every["cuts"] == four["cuts"] == 1 and every["latin_text"] == ["2", "3", "SCORE"]


async def test_an_image_and_a_sound_alone_are_taken(rig: EngineRig) -> None:
    """An image has no seconds and no sound; a sound has no picture."""
    image = await ask(rig, part(jpeg(pictures()[-1]), "image/jpeg"), sound=False)
    assert read_measured(image)["shapes"] == {"blue": 3} and image["speech"] == "No sound was sent."
    sound = await ask(rig, part(wav(spoken(), RATE), "audio/wav"), sound=False)
    assert sound["scene"] == "No picture was sent." and read_measured(sound)["beeps"] == 1


async def test_the_answer_is_in_the_prompt_s_language_and_always_the_same(
    rig: EngineRig, normal: dict[str, str]
) -> None:
    """Asked in Korean it answers in Korean, twice with the same words at any temperature and seed."""
    first = await ask(rig, part(clip()), prompt=PROMPTS["ko"], temperature=1.0, seed=1)
    second = await ask(rig, part(clip()), prompt=PROMPTS["ko"], temperature=0.0, seed=2)
    assert first == second
    assert "장면 전환 1번" in first["scene"] and "말소리가 들립니다" in first["speech"]
    assert read_measured(first) == read_measured(normal)


async def test_a_short_limit_cuts_the_answer(rig: EngineRig) -> None:
    """max_tokens 5: five tokens and finish_reason length."""
    image = part(jpeg(pictures()[-1]), "image/jpeg")
    reply = (await rig.ask(body(image, sound=False, max_tokens=5))).json()
    assert reply["choices"][0]["finish_reason"] == "length" and reply["usage"]["completion_tokens"] == 5


async def test_a_stream_holds_the_same_answer(rig: EngineRig, normal: dict[str, str]) -> None:
    """The events of a stream add up to the answer sent whole."""
    whole = json.dumps(normal, ensure_ascii=False, separators=(",", ":"))
    reply = await rig.ask(body(part(clip()), stream=True))
    chunks = [event for event in events(reply.content) if isinstance(event, dict)]
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == whole


async def test_text_alone_is_answered_honestly(rig: EngineRig) -> None:
    """Without media there is nothing to measure, and it says so in the prompt's language."""
    texts = []
    for prompt in ("Who won the game?", "누가 이겼나요?"):
        reply = await rig.ask({"model": "qwen", "messages": [{"role": "user", "content": prompt}]})
        texts.append(reply.json()["choices"][0]["message"]["content"])
    assert "not a language model" in texts[0] and "언어 모델이 아니라" in texts[1]


async def test_a_clip_damaged_in_the_middle_is_still_looked_at(rig: EngineRig) -> None:
    """Noise over a tenth of the picture's bytes costs frames, not the answer."""
    damaged = bytearray(silent_film())
    start = silent_film().index(b"mdat") + len(silent_film()) // 3
    damaged[start : start + len(silent_film()) // 10] = np.random.default_rng(1).bytes(len(silent_film()) // 10)
    measured = read_measured(await ask(rig, part(bytes(damaged)), sound=False))
    assert measured["frames"] >= 2


async def test_the_time_of_each_stage_is_kept(rig: EngineRig) -> None:
    """GET /truth tells what looking, reading and listening took."""
    await ask(rig, part(clip()))
    stages = (await rig.truth())[-1]
    assert {"decode", "picture", "text", "sound"} <= set(json.dumps(stages).replace('"', " ").split())


async def test_a_picture_that_is_none_is_refused(rig: EngineRig) -> None:
    """Bytes sent as an image that are no image: 400."""
    reply = await rig.ask(body(part(io.BytesIO(b"no image").getvalue(), "image/jpeg"), sound=False))
    assert (reply.status_code, reply.json()["error"]["message"]) == (400, "cannot identify image file")
