"""Data URIs and base64: legal forms are read, damaged ones refused with the field's name."""

from __future__ import annotations

import base64

import pytest

from vision_bench.engine.chat.attachments import decode_base64, read_part, read_url
from vision_bench.engine.chat.model import BadChatRequest

DATA = bytes(range(256))
TEXT = base64.b64encode(DATA).decode()


@pytest.mark.parametrize(
    "uri",
    [
        f"data:video/mp4;base64,{TEXT}",
        f"data:video/mp4;codecs=avc1;base64,{TEXT}",
        f"data:video/mp4;BASE64,{TEXT}",
        f"data:;base64,{TEXT}",
        f"DATA:video/mp4;base64,{TEXT}",
    ],
)
def test_legal_forms_are_read(uri: str) -> None:
    """Parameters, capitals and a missing media type are RFC 2397."""
    part = read_url(uri, "video", "there")
    assert (part.data, part.media_type) == (DATA, "video/mp4")


@pytest.mark.parametrize("uri", ["data:video/mp4,%00%01", "data:video/mp4;base64"])
def test_percent_encoding_and_a_missing_comma_are_400(uri: str) -> None:
    """Neither form can be told from a mistake, and the message says where it stands."""
    with pytest.raises(BadChatRequest, match=r"messages\.0\.content\.1") as caught:
        read_url(uri, "video", "messages.0.content.1.video_url.url")
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "text",
    [
        TEXT[:40] + "!!!!" + TEXT[40:],
        "\n".join(TEXT[start : start + 76] for start in range(0, len(TEXT), 76)),
        base64.urlsafe_b64encode(DATA).decode(),
        TEXT.rstrip("="),
        "한글",
        "A",
        "AAAA=",
    ],
)
def test_wrong_base64_is_refused_and_never_repaired(text: str) -> None:
    """Odd characters, line breaks, -_ letters, lost padding: 400 that names the field, nothing dropped."""
    with pytest.raises(BadChatRequest, match="in the_field") as caught:
        decode_base64(text, "the_field")
    assert caught.value.status == 400


def test_odd_characters_are_told_in_vllm_words() -> None:
    """A client that looks for vLLM's message finds it."""
    with pytest.raises(BadChatRequest, match=r"^Non-base64 digit found"):
        decode_base64("@@@notbase64", "x")


def test_jpeg_frames_are_split_at_commas() -> None:
    """data:video/jpeg;base64,F1,F2 is a video of two pictures."""
    part = read_url(f"data:video/jpeg;base64,{TEXT},{TEXT}", "video", "x")
    assert part.frames == (DATA, DATA)
    assert part.data == b""


@pytest.mark.parametrize("url", ["ftp://host/x.mp4", "nonsense", ""])
def test_other_schemes_are_refused_in_vllm_words(url: str) -> None:
    """HTTP, data and file are the ones it names."""
    with pytest.raises(BadChatRequest, match="must be either a HTTP, data or file URL"):
        read_url(url, "video", "x")


def test_http_is_not_fetched_and_query_secrets_are_not_repeated() -> None:
    """The message names the host alone."""
    with pytest.raises(BadChatRequest, match=r"names media\.example") as caught:
        read_url("https://user:pw@media.example/x.mp4?token=secret", "video", "x")
    assert "secret" not in caught.value.message and "pw" not in caught.value.message


def test_input_audio_is_bare_base64_with_a_format() -> None:
    """OpenAI's own part for sound."""
    part = read_part(
        {"type": "input_audio", "input_audio": {"data": TEXT, "format": "wav"}}, index=0, place="x", counts={}
    )
    assert (part.kind, part.media_type, part.data) == ("audio", "audio/wav", DATA)


def test_uuid_without_data_is_a_cache_miss_with_its_index() -> None:
    """The second video of a message is index 1."""
    counts = {"video": 1}
    with pytest.raises(BadChatRequest, match="Cache miss for video at index 1"):
        read_part({"type": "video_url", "video_url": None, "uuid": "u"}, index=0, place="x", counts=counts)


def test_unknown_part_has_the_eight_complaints_of_pydantic() -> None:
    """Four kinds are tried, each lacks two things."""
    with pytest.raises(BadChatRequest, match=r"^8 validation errors for ValidatorIterator"):
        read_part({"type": "hologram", "x": 1}, index=0, place="x", counts={})
