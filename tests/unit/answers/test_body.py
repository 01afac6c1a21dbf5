"""answers.body: the request, key for key."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from vision_bench.answers.analysis import Question, analysis_schema, default_question
from vision_bench.answers.body import ClipBody, Options, from_video
from vision_bench.errors import InvalidRequest

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "clip_analysis_body.json").read_text("utf-8"))
QUESTION = Question("<Prompt>", analysis_schema())


def video(options: Options | None = None, *, has_audio: bool = True, question: Question = QUESTION) -> ClipBody:
    return from_video(b"CLIP", question, options or Options(), has_audio=has_audio)


def test_default_body_is_the_original_experiments() -> None:
    """Every key and value, and their order, as in the experiment's own request."""
    built = video()
    assert json.dumps(built.body) == json.dumps(GOLDEN)
    assert built.use_audio_in_video and built.warnings == ()


def test_a_clip_without_sound_is_not_asked_for_sound() -> None:
    """vLLM answers use_audio_in_video without a sound track with 400: the key is left off and the clip is listed."""
    built = video(has_audio=False)
    assert "mm_processor_kwargs" not in built.body
    assert built.use_audio_in_video is False and built.warnings == ("no_audio",)


def test_sound_left_out_on_purpose_is_no_warning() -> None:
    """`--no-audio` is a choice, not a finding."""
    built = video(Options(use_audio=False), has_audio=False)
    assert "mm_processor_kwargs" not in built.body and built.warnings == ()


def test_frame_count_takes_the_place_of_the_rate() -> None:
    """num_frames alone is sent as it is; both at once are refused."""
    assert video(Options(num_frames=8)).body["media_io_kwargs"] == {"video": {"num_frames": 8}}
    assert video(Options(fps=0.5)).body["media_io_kwargs"] == {"video": {"fps": 0.5}}
    with pytest.raises(InvalidRequest, match="exclude each other"):
        Options(fps=2.0, num_frames=8)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"fps": 0.0}, "fps"),
        ({"fps": float("nan")}, "fps"),
        ({"num_frames": 0}, "num_frames"),
        ({"temperature": 3.0}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
def test_numbers_out_of_range_are_refused_with_their_value(bad: dict[str, float], says: str) -> None:
    """What vLLM would answer with 400 a hundred times is refused once, here."""
    with pytest.raises(InvalidRequest, match=says):
        Options(**bad)  # type: ignore[arg-type]


def test_free_text_has_no_response_format() -> None:
    """A prompt of one's own without a schema leaves the answer's form to the model."""
    assert "response_format" not in video(question=Question("Who scores?", None)).body


def test_sglang_keeps_its_switch_at_the_top_and_takes_no_rate() -> None:
    """What cannot be said per request is not said in silence."""
    built = video(Options(dialect="sglang"))
    assert built.body["use_audio_in_video"] is True
    assert not {"media_io_kwargs", "mm_processor_kwargs"} & built.body.keys()
    assert built.warnings[0].startswith("fps_not_sent")
    assert "use_audio_in_video" not in video(Options(dialect="sglang"), has_audio=False).body


def test_media_is_only_ever_the_first_class_data_uri() -> None:
    """Standard alphabet, padding, no line break, no parameter: every server reads it."""
    data = bytes(range(256)) * 3 + b"\xfb\xff"
    url = from_video(data, QUESTION, Options(), has_audio=True).body["messages"][0]["content"][0]["video_url"]["url"]
    head, _, payload = url.partition(",")
    assert head == "data:video/mp4;base64"
    assert base64.b64decode(payload, validate=True) == data
    assert len(payload) % 4 == 0 and not set("\r\n-_") & set(payload)


def test_fingerprint_changes_with_everything_that_could_change_an_answer() -> None:
    """Resuming under other settings asks again; under the same ones it does not."""
    question = default_question()
    variants = [
        Options(),
        Options(model="other"),
        Options(fps=1.0),
        Options(num_frames=8),
        Options(temperature=0.0),
        Options(max_tokens=9),
        Options(use_audio=False),
        Options(dialect="sglang"),
        Options(send="frames"),
    ]
    assert len({options.fingerprint(question) for options in variants}) == len(variants)
    assert Options().fingerprint(default_question("en")) != Options().fingerprint(question)
    assert Options().fingerprint(default_question()) == Options().fingerprint(question)
