"""Prompts counted from their media."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from vision_bench.engine.chat.model import BadChatRequest, ChatRequest, MediaPart
from vision_bench.engine.chat.opening import count_prompt


def jpeg(width: int = 320, height: int = 240) -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (width, height)).save(target, "JPEG")
    return target.getvalue()


def request(*media: MediaPart, num_frames: int | None = None, use_audio_in_video: bool = False) -> ChatRequest:
    return ChatRequest(
        request_id="r",
        model="qwen",
        prompt="Describe.",
        system="",
        media=media,
        max_tokens=16,
        num_frames=num_frames,
        use_audio_in_video=use_audio_in_video,
    )


def frames(count: int) -> MediaPart:
    return MediaPart("video", "video/jpeg", b"", (jpeg(),) * count)


@pytest.mark.parametrize(("num_frames", "tokens"), [(None, 560), (4, 280), (-1, 560), (99, 560)])
def test_num_frames_counts_for_jpeg_frames(num_frames: int | None, tokens: int) -> None:
    """vLLM: 8 frames of 320x240 are 560 tokens, 280 with num_frames 4."""
    count = count_prompt(request(frames(8), num_frames=num_frames))
    assert count.by_kind == {"video": tokens}
    assert count.prompt_tokens == 15 + tokens


def test_text_alone_has_no_kinds() -> None:
    """multimodal_tokens is then null."""
    assert count_prompt(request()).by_kind == {}


def test_picture_and_frames_are_counted_apart_and_added_up() -> None:
    """Both are visual tokens."""
    count = count_prompt(request(MediaPart("image", "image/jpeg", jpeg()), frames(2)))
    assert count.by_kind == {"image": 80, "video": 140}
    assert count.visual == 220


def test_frames_have_no_sound() -> None:
    """use_audio_in_video on pictures is the error of a clip without a track."""
    with pytest.raises(BadChatRequest, match=r"^No audio stream found\.$"):
        count_prompt(request(frames(2), use_audio_in_video=True))


@pytest.mark.parametrize("data", [b"", b"not a video" * 100])
def test_video_that_does_not_open_is_told_in_vllm_words(data: bytes) -> None:
    """Empty and damaged are alike."""
    with pytest.raises(BadChatRequest, match=r"^Could not open video stream$"):
        count_prompt(request(MediaPart("video", "video/mp4", data)))


def test_picture_that_does_not_open_is_refused() -> None:
    """So is a video that is a picture."""
    with pytest.raises(BadChatRequest, match="cannot identify image file"):
        count_prompt(request(MediaPart("image", "image/jpeg", b"x")))
    with pytest.raises(BadChatRequest, match="Could not open video stream"):
        count_prompt(request(MediaPart("video", "video/mp4", jpeg())))
