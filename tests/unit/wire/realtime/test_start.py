"""wire.realtime.start: every check before video.start, and what the fields come to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vision_bench.wire.realtime.start import MAX_START_CHARACTERS, Start, StartRefused, read_start

MODEL = "m"
GIVEN: dict[str, Any] = {
    "type": "session.start",
    "model": MODEL,
    "prompt": "p",
    "width": 64,
    "height": 48,
    "num_frames": 33,
    "fps": 16,
    "seed": 1,
}


def read(**changes: Any) -> Start:
    """The request with some fields other."""
    return read_start(json.dumps({**GIVEN, **changes}), model=MODEL)


def refusal(message: str) -> str:
    """What the client is told."""
    with pytest.raises(StartRefused) as refused:
        read_start(message, model=MODEL)
    return str(refused.value)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("{x", "Invalid JSON in session.start"),
        ("[" * 5000, "Invalid JSON in session.start"),
        ("", "Invalid JSON in session.start"),
        ("[1]", "session.start must be a JSON object"),
        ("null", "session.start must be a JSON object"),
        ('{"type": "session.interaction"}', "Expected session.start, got: session.interaction"),
        ("{}", "Expected session.start, got: None"),
        (" " * (MAX_START_CHARACTERS + 1), "session.start message too large"),
    ],
)
def test_what_is_no_start_is_told_so_in_the_servers_words(message: str, told: str) -> None:
    """Length, then JSON, then kind, then type."""
    assert refusal(message) == told


def test_the_limit_counts_characters_and_not_bytes() -> None:
    """A message of exactly 4 Mi characters passes, also when each is three bytes long."""
    empty = json.dumps({**GIVEN, "prompt": ""}, ensure_ascii=False)
    full = {**GIVEN, "prompt": "가" * (MAX_START_CHARACTERS - len(empty))}
    assert read_start(json.dumps(full, ensure_ascii=False), model=MODEL).prompt[0] == "가"
    assert refusal(json.dumps({**full, "prompt": full["prompt"] + "가"}, ensure_ascii=False)).endswith("too large")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"format": "mp4"}, "Invalid session.start format: expected 'm4s'."),
        ({"format": None}, "Invalid session.start format: expected 'm4s'."),
        ({"model": "zz"}, "Model mismatch: request specifies 'zz' but server is running 'm'."),
        ({"prompt": None}, "Invalid session.start: prompt: Field required"),
        ({"prompt": 5}, "Invalid session.start: prompt: Input should be a valid string"),
        ({"num_frames": 0}, "Invalid session.start: num_frames: Input should be greater than or equal to 1"),
        ({"num_frames": 9.5}, "Invalid session.start: num_frames: Input should be a valid integer"),
        ({"num_frames": "many"}, "Invalid session.start: num_frames: Input should be a valid integer"),
        ({"width": -16}, "Invalid session.start: width: Input should be greater than or equal to 1"),
        ({"height": [480]}, "Invalid session.start: height: Input should be a valid integer"),
        ({"size": "832"}, "Invalid session.start: size: String should match pattern"),
        ({"seconds": "0"}, "Invalid session.start: seconds: String should match pattern"),
        ({"seconds": 4}, "Invalid session.start: seconds: Input should be a valid string"),
        ({"fps": 0.5}, "Invalid session.start: fps: Input should be greater than or equal to 1"),
        ({"fps": float("inf")}, "Invalid session.start: fps: Input should be a finite number"),
        ({"fps": float("nan")}, "Invalid session.start: fps: Input should be a finite number"),
        ({"fps": "fast"}, "Invalid session.start: fps: Input should be a valid number"),
        ({"fps": {}}, "Invalid session.start: fps: Input should be a valid number"),
        ({"seed": 2**63}, "Invalid session.start: seed: Input should be less than or equal to"),
        ({"num_inference_steps": 201}, "Invalid session.start: num_inference_steps: Input should be less than"),
        ({"guidance_scale": 20.5}, "Invalid session.start: guidance_scale: Input should be less than"),
        ({"guidance_scale_2": float("nan")}, "Invalid session.start: guidance_scale_2: Input should be greater"),
        ({"boundary_ratio": -0.1}, "Invalid session.start: boundary_ratio: Input should be greater"),
        ({"quality": "low"}, "Invalid session.start: quality: Input should be 'lossless' or 'high'"),
        ({"num_outputs_per_prompt": 11}, "Invalid session.start: num_outputs_per_prompt: Input should be less"),
        ({"generate_sound": "perhaps"}, "Invalid session.start: generate_sound: Input should be a valid boolean"),
        ({"lora": "name"}, "Invalid session.start: lora: Input should be a valid dictionary"),
        ({"extra_params": [1]}, "Invalid session.start: extra_params: Input should be a valid dictionary"),
        ({"video_params": {"fps": 0}}, "Invalid session.start: video_params: fps: Input should be greater"),
        ({"video_params": 5}, "Invalid session.start: video_params: Input should be a valid dictionary"),
        ({"image_reference": "data:,"}, "Invalid session.start: image_reference: Input should be a valid dictionary"),
        ({"image_reference": {}}, "Invalid session.start: image_reference: Input should be an object with"),
        ({"image_reference": {"image_url": 5}}, "Invalid session.start: image_reference: Input should be a valid str"),
        (
            {"image_reference": {"image_url": "x", "detail": "high"}},
            "Invalid session.start: image_reference: Input should be an object with image_url or file_id alone",
        ),
        ({"sampling_params": {"num_frames": 5}, "num_frames": -1}, "Invalid session.start: num_frames"),
    ],
)
def test_a_field_of_another_kind_or_range_is_named(changes: dict[str, Any], told: str) -> None:
    """What is wrong with it stands behind its name."""
    assert refusal(json.dumps({**GIVEN, **changes})).startswith(told)


def test_the_echo_is_the_request_without_nulls_and_with_defaults() -> None:
    """A whole rate comes back as a float; unknown keys are gone without a word."""
    config = read(negative_prompt=None, colour="red").config
    assert config == {
        "model": "m",
        "prompt": "p",
        "width": 64,
        "height": 48,
        "num_frames": 33,
        "fps": 16.0,
        "seed": 1,
        "num_outputs_per_prompt": 1,
        "generate_sound": False,
        "enable_frame_interpolation": False,
        "frame_interpolation_exp": 1,
        "frame_interpolation_scale": 1.0,
    }
    assert json.dumps(config["fps"]) == "16.0"


def test_a_rate_that_was_not_given_is_used_and_not_echoed() -> None:
    """24 for the muxer."""
    start = read(fps=None)
    assert (start.fps, "fps" in start.config) == (24.0, False)


def test_numbers_may_come_as_text_or_as_whole_floats() -> None:
    """As the server's validator takes them."""
    start = read(num_frames="21", width=64.0, fps="15.5", seed=True, generate_sound="true")
    assert (start.num_frames, start.size, start.fps) == (21, (64, 48), 15.5)
    assert (start.config["seed"], start.config["generate_sound"]) == (1, True)


def test_the_size_wins_over_the_fields_and_they_over_the_block() -> None:
    """One side alone is no size."""
    block = {"width": 320, "height": 240, "fps": 30, "num_frames": 9}
    assert read(size="832x480", video_params=block).size == (832, 480)
    assert read(video_params=block).size == (64, 48)
    start = read(width=None, height=None, fps=None, num_frames=None, video_params=block)
    assert (start.size, start.fps, start.num_frames) == ((320, 240), 30.0, 9)
    assert read(width=None).size is None


def test_seconds_count_only_without_a_frame_count() -> None:
    """int(seconds x fps), at whatever rate there is."""
    assert read(num_frames=None, seconds="4").num_frames == 64
    assert read(num_frames=None, seconds="2", fps=None).num_frames == 48
    assert read(seconds="4").num_frames == 33
    assert read(num_frames=None, seconds="999999999", fps=1e308).num_frames == 2**31 - 1


def test_chunks_follow_from_the_frames() -> None:
    """No count is the engine's default of one picture, which fills no chunk."""
    assert read().num_chunks == 3
    assert read(num_frames=None).num_chunks == 0


def test_sampling_params_are_spread() -> None:
    """A known field that the top level lacks goes up; one that it has, and an unknown one, goes into extra_params."""
    start = read(
        num_frames=None,
        extra_params={"flow_shift": 5.0, "mine": 1},
        sampling_params={"num_frames": 21, "seed": 9, "eta": 0.5},
    )
    assert start.num_frames is None, "a field that is there, as null, is not absent"
    sent = {name: value for name, value in GIVEN.items() if name != "num_frames"}
    message = {**sent, "extra_params": {"mine": 1}, "sampling_params": {"num_frames": 21, "seed": 9, "eta": 0.5}}
    start = read_start(json.dumps(message), model=MODEL)
    assert (start.num_frames, start.config["seed"]) == (21, 1)
    assert start.extra_params == {"mine": 1, "seed": 9, "eta": 0.5}
    assert read(sampling_params="none").extra_params == {}


def test_a_blank_prompt_and_a_list_of_pictures_pass_here() -> None:
    """They are refused after video.start."""
    assert read(prompt="").prompt == ""
    pictures = [{"image_url": "a"}, {"file_id": "b"}]
    assert read(image_reference=pictures).config["image_reference"] == pictures


def test_no_model_is_the_servers() -> None:
    """The first served name is used."""
    assert "model" not in read(model=None).config
