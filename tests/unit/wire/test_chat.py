"""wire.chat: bodies, answers and errors as vLLM really sends them."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.wire import chat

SEED_ANSWER: dict[str, Any] = {  # vLLM 0.21, as printed in the original experiment
    "id": "chatcmpl-a4e66116bd600be3",
    "object": "chat.completion",
    "created": 1780911108,
    "prompt_routed_experts": None,
    "model": "qwen",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "refusal": None, "tool_calls": [], "reasoning": None},
            "logprobs": None,
            "finish_reason": "stop",
            "stop_reason": None,
        }
    ],
    "system_fingerprint": "vllm-0.21.0-955d20dc",
    "usage": {"prompt_tokens": 23, "total_tokens": 63, "completion_tokens": 40, "prompt_tokens_details": None},
}


def test_reads_the_shape_of_vllm_0_21() -> None:
    """`tool_calls: []` and the fields that later versions dropped do not matter."""
    reply = chat.read_reply(SEED_ANSWER)
    assert (reply.text, reply.finish_reason, reply.model) == ("Hello", "stop", "qwen")
    assert reply.usage is not None and reply.usage["completion_tokens"] == 40
    assert reply.response_id == "chatcmpl-a4e66116bd600be3"
    assert reply.tool_calls == ()


def test_reads_the_shape_of_vllm_0_32() -> None:
    """No `tool_calls` key, multimodal token counts, and a number as stop reason."""
    body = {
        "id": "chatcmpl-8",
        "model": "tiny-omni",
        "choices": [
            {"index": 0, "message": {"content": "x", "reasoning": "y"}, "finish_reason": "stop", "stop_reason": 449}
        ],
        "usage": {"completion_tokens": 1, "prompt_tokens_details": {"multimodal_tokens": {"video": 840}}},
    }
    reply = chat.read_reply(body)
    assert (reply.text, reply.reasoning, reply.stop_reason) == ("x", "y", 449)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"error": {"message": "EngineCore encountered an issue", "code": None}}, "EngineCore encountered an issue"),
        ({"choices": []}, "no choices"),
        ({}, "no choices"),
        ("text", "not a JSON object"),
        (None, "not a JSON object"),
    ],
)
def test_a_200_without_an_answer_is_refused(body: object, says: str) -> None:
    """An error object or an empty list in a 200 body is never read as an empty answer."""
    with pytest.raises(ValueError, match=says):
        chat.read_reply(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "The model `nope` does not exist.", "code": 404}}, "The model `nope` does not exist."),
        ({"error": "Unauthorized"}, "Unauthorized"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"detail": {"error": {"message": "frame 9 is gone", "code": "frame_evicted"}}}, "frame 9 is gone"),
        ({"detail": [{"loc": ["body", "items"], "msg": "field required"}]}, "body.items: field required"),
        ({"message": "no route"}, "no route"),
        (b'{"error": {"message": "x"}}', "x"),
        (b"<html>502 Bad Gateway</html>", "<html>502 Bad Gateway</html>"),
        (b"", "empty answer"),
        ({"error": {"code": 500}}, '{"code": 500}'),
        ({}, "{}"),
        (None, "None"),
        ("[1]", "[1]"),
    ],
)
def test_any_error_body_becomes_one_string(body: object, message: str) -> None:
    """vLLM's object, its 401 string, the router's detail, a proxy's page and nothing at all."""
    assert chat.error_message(body) == message


def test_error_body_reads_back() -> None:
    """The shape this project writes is the shape it reads."""
    assert chat.error_message(chat.error_body("full", type="Overloaded", code=503)) == "full"


def test_body_leaves_out_what_is_none() -> None:
    """A key that is absent lets the server's default hold; null would not."""
    body = chat.chat_body(model="qwen", messages=[chat.user_message("hi")], temperature=0.0)
    assert body == {"model": "qwen", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.0}


def test_streamed_body_asks_for_usage() -> None:
    """Without the usage chunk nobody can count tokens."""
    body = chat.chat_body(model="qwen", messages=[], stream=True, extra={"seed": 1})
    assert body["stream"] is True and body["stream_options"] == {"include_usage": True} and body["seed"] == 1


def test_parts_have_the_shapes_vllm_reads() -> None:
    """Video and image by URL, sound as bare base64 with its format."""
    assert chat.video_part("data:v") == {"type": "video_url", "video_url": {"url": "data:v"}}
    assert chat.image_part("data:i") == {"type": "image_url", "image_url": {"url": "data:i"}}
    assert chat.audio_part("QUJD") == {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}}
