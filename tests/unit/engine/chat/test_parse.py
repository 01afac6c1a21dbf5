"""A body as a request: what is read, what is ignored, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.engine.chat.model import BadChatRequest, ChatRequest
from vision_bench.engine.chat.parse import parse_chat
from vision_bench.engine.chat.settings import EngineSettings

HELLO = [{"role": "user", "content": "Hello"}]


def parse(body: dict[str, Any], **settings: Any) -> ChatRequest:
    return parse_chat(body, settings=EngineSettings(**settings), request_id="r", arrived_ns=1)


def test_text_of_the_last_user_message_and_of_all_system_messages() -> None:
    """Parts are joined by a line break, earlier turns are left out."""
    request = parse(
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "first"},
                {"role": "assistant", "content": "answer"},
                {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            ]
        }
    )
    assert (request.prompt, request.system) == ("one\ntwo", "Be brief.")


def test_fields_that_nobody_knows_and_unknown_roles_are_ignored() -> None:
    """vLLM takes both."""
    assert parse({"messages": [{"role": "alien", "content": "hi"}], "foo_bar": 1}).prompt == "hi"


def test_kwargs_of_media_are_read() -> None:
    """fps and num_frames come from media_io_kwargs.video, the rest from mm_processor_kwargs."""
    request = parse(
        {
            "messages": HELLO,
            "media_io_kwargs": {"video": {"fps": 1, "num_frames": 8}},
            "mm_processor_kwargs": {"use_audio_in_video": True, "max_pixels": 16384, "fps": 9.0},
        }
    )
    assert (request.fps, request.num_frames, request.max_pixels) == (1.0, 8, 16384)
    assert request.use_audio_in_video


def test_size_longest_edge_is_the_newer_name_of_max_pixels() -> None:
    """transformers moved the bound there."""
    assert parse({"messages": HELLO, "mm_processor_kwargs": {"size": {"longest_edge": 99}}}).max_pixels == 99


def test_max_completion_tokens_wins_over_max_tokens() -> None:
    """OpenAI's newer name; without both the context length is the limit."""
    assert parse({"messages": HELLO, "max_tokens": 5, "max_completion_tokens": 7}).max_tokens == 7
    assert parse({"messages": HELLO}, max_model_len=4096).max_tokens == 4096


@pytest.mark.parametrize(
    ("fields", "says", "param"),
    [
        ({"temperature": -1}, "temperature must be non-negative, got -1.0.", "temperature"),
        ({"temperature": 2.5}, "temperature must be in [0, 2], got 2.5.", "temperature"),
        ({"top_p": 0}, "top_p must be in (0, 1], got 0.0.", "top_p"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, got 0.", "max_tokens"),
        ({"n": 0}, "n must be at least 1, got 0.", None),
        ({"media_io_kwargs": {"video": {"fps": "abc"}}}, "'<' not supported between instances of 'int'", None),
        ({"media_io_kwargs": {"video": {"backend": "nope"}}}, "Unknown video codec backend 'nope'", None),
        ({"model": "nope"}, "The model `nope` does not exist. Valid aliases: qwen.", "model"),
        ({"messages": []}, "Cannot apply chat template to an empty conversation.", None),
        ({"messages": [3]}, "1 validation error:", "body.messages.0"),
        ({"messages": [{"content": "x"}]}, "1 validation error:", "body.messages.0.role"),
        ({"media_io_kwargs": []}, "1 validation error:", "body.media_io_kwargs"),
        ({"media_io_kwargs": {"video": 3}}, "1 validation error:", "body.media_io_kwargs.video"),
        ({"model": 3}, "1 validation error:", "body.model"),
    ],
)
def test_refusals(fields: dict[str, Any], says: str, param: str | None) -> None:
    """Each in vLLM's words, with its parameter."""
    with pytest.raises(BadChatRequest) as caught:
        parse({"messages": HELLO} | fields)
    assert caught.value.message.startswith(says)
    assert caught.value.param == param


@pytest.mark.parametrize("name", ["mm_processor_kwargs", "media_io_kwargs"])
def test_untrusting_server_refuses_media_kwargs(name: str) -> None:
    """vLLM's default; the message names the flag that cures it."""
    with pytest.raises(BadChatRequest, match="--trust-request-mm-kwargs") as caught:
        parse({"messages": HELLO, name: {"video": {"fps": 1}}}, trust_request_mm_kwargs=False)
    assert caught.value.param == name


def test_too_many_videos_are_refused_by_kind() -> None:
    """Two allowed, three sent."""
    video = {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}}
    with pytest.raises(BadChatRequest, match=r"At most 2 video\(s\) may be provided in one prompt"):
        parse({"messages": [{"role": "user", "content": [video] * 3}]}, limit_mm_per_prompt={"video": 2})


def test_stop_is_a_string_or_a_list() -> None:
    """Empty ones are dropped."""
    assert parse({"messages": HELLO, "stop": "x"}).stop == ("x",)
    assert parse({"messages": HELLO, "stop": ["x", "", "y"]}).stop == ("x", "y")
