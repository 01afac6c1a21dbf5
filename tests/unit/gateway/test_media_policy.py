"""What bodies may ask of vLLM when an operator set rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vision_bench.gateway.exchange import Refusal
from vision_bench.gateway.media_policy import LONG_STRING_BYTES, SKELETON_BYTES, MediaPolicy
from vision_bench.gateway.settings import Settings

POLICY = MediaPolicy(["cdn.example.org"], max_fps=4, max_num_frames=32)
GOOD = "https://cdn.example.org/clip.mp4"
BAD = "http://169.254.169.254/latest"
DATA = "data:video/mp4;base64,AAAA"


def body(*parts: Any, **fields: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": list(parts)}], **fields}).encode()


def refused(raw: bytes, policy: MediaPolicy = POLICY) -> Refusal:
    with pytest.raises(Refusal) as caught:
        policy.check(raw)
    return caught.value


def shapes(url: Any) -> list[Any]:
    """The content parts in which vLLM finds a URL (its renderers/chat_utils.py), and some in which it might."""
    return [
        {"type": "video_url", "video_url": {"url": url}},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
        {"type": "audio_url", "audio_url": {"url": url}},
        {"type": "input_image", "image_url": url},
        {"image_url": url},
        {"video_url": url},
        {"audio_url": {"url": url}},
        {"type": "image_url", "image_url": url, "uuid": "1"},
        {"type": "text", "text": "x", "video_url": {"url": url}, "uuid": 7},
        {"type": "video_url", "video_url": [url]},
        {"type": "video", "video": url},
        {"type": "image", "image": {"url": url}},
        {"type": "tool", "content": [[{"deeper": {"audio_url": url}}]]},
    ]


@pytest.mark.parametrize("index", range(len(shapes(""))))
def test_a_url_is_found_in_every_shape(index: int) -> None:
    """Data and a listed host pass; another host does not, and the refusal names the field but not the path."""
    POLICY.check(body({"type": "text", "text": BAD}, shapes(DATA)[index], shapes(GOOD)[index]))
    problem = refused(body({"type": "text", "text": "x"}, shapes(BAD)[index]))
    assert (problem.status, problem.type) == (400, "media_not_allowed")
    param = json.loads(problem.body)["error"]["param"]
    assert param.startswith("messages[0].content[1].")
    assert param.endswith(("url", "video"))
    assert "latest" not in str(problem)


@pytest.mark.parametrize("url", ["DATA:video/mp4;base64,AAAA", "data:,x", "data:video/mp4;base64," + "A" * 100_000])
def test_data_passes_in_any_size_and_case(url: str) -> None:
    """It is fetched from nowhere."""
    for shape in shapes(url):
        POLICY.check(body(shape))


@pytest.mark.parametrize(
    "url", [" data:video/mp4,AAAA", "dat\u0430:x", "http://evil/" + "x" * 5000, "\\data:", 7, True, 1.5]
)
def test_what_is_no_url_does_not(url: Any) -> None:
    """A blank in front, a letter that looks like another, what is longer than any URL, what is no text."""
    for shape in shapes(url):
        assert refused(body(shape)).status == 400


@pytest.mark.parametrize(
    "part", [{"type": "image_url", "uuid": "1"}, {"image_url": None, "uuid": "1"}, "text", None, 3, []]
)
def test_what_holds_no_url_passes(part: Any) -> None:
    """A part that names what was sent before, and what vLLM itself refuses."""
    POLICY.check(body(part))


def test_sound_as_base64_passes_and_sound_as_a_url_is_a_url() -> None:
    """input_audio holds base64; whatever has a colon is none."""
    POLICY.check(body({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}))
    refused(body({"type": "input_audio", "input_audio": {"data": BAD, "format": "wav"}}))


@pytest.mark.parametrize("name", ["media_io_kwargs", "mm_processor_kwargs"])
@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("fps", [4, 0.5, 4.0], [4.1, 0, -1, 10**400, "2", None, True, [2], {"n": 2}]),
        ("max_fps", [1], [60]),
        ("num_frames", [32, 1], [33, -1, 0, "8", None, False, 10**30]),
        ("max_frames", [32], [768]),
        ("min_frames", [4], [64]),
    ],
)
def test_frames_are_capped_wherever_they_are_asked_for(name: str, key: str, good: list[Any], bad: list[Any]) -> None:
    """At any depth; what loaders take for "all" is refused, and so is what is no number."""
    for value in good:
        POLICY.check(body(**{name: {key: value, "video": {key: value, "videos_kwargs": {key: value}}}}))
    for value in bad:
        for place in ({key: value}, {"video": {key: value}}, {"video": [{"videos_kwargs": {key: value}}]}):
            problem = refused(body(**{name: place}))
            assert json.loads(problem.body)["error"]["param"].startswith(name)


def test_only_the_caps_that_are_set_hold() -> None:
    """No cap on frames: any number; other fields of the kwargs are nobody's business."""
    MediaPolicy([], max_fps=4).check(body(media_io_kwargs={"video": {"num_frames": -1, "fps": 4, "max_duration": 900}}))
    MediaPolicy([], max_num_frames=4).check(body(mm_processor_kwargs={"fps": 900, "do_sample_frames": True}))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
def test_numbers_that_are_none_do_not_slip_through(number: str) -> None:
    """Python's parser takes them; a comparison with NaN says no to everything."""
    raw = body(media_io_kwargs={"video": {"fps": 1}}).replace(b'"fps": 1', b'"fps": ' + number.encode())
    assert refused(raw).status == 400


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense",
        b"[]",
        b'"x"',
        b'{"messages": []',
        b'{"messages": []} x',
        b"\xef\xbb\xbf{}",
        '{"messages": []}'.encode("utf-16"),
        b'{"a": "\xff"}',
        b'{"a": "\x01"}',
        b'{"a": [' * 200 + b"]}" * 200,
        b"[" * 100_000,
        b'{"messages": [], "messages": []}',
        b'{"messages": [], "m\\u0065ssages": []}',
        b'{"messages": [{"content": [{"video_url": "data:,", "video_url": "http://169.254.169.254/"}]}]}',
        b'{"a": {"fps": 1, "fps": 2}}',
    ],
)
def test_what_two_parsers_could_read_differently_is_refused(raw: bytes) -> None:
    """Not JSON, not UTF-8, nested without end, a name twice in one object: 400 before vLLM sees it."""
    problem = refused(raw)
    assert (problem.status, problem.type) == (400, "invalid_request")


def test_a_refusal_names_the_item() -> None:
    """The place of the body in a batch begins the place of the field."""
    with pytest.raises(Refusal) as caught:
        POLICY.check(body({"video_url": BAD}), place="items[2].body.")
    assert json.loads(caught.value.body)["error"]["param"] == "items[2].body.messages[0].content[0].video_url"
    with pytest.raises(Refusal, match=r"items\[2\].body: not JSON"):
        POLICY.check(b"{", place="items[2].body.")


@pytest.mark.parametrize(
    "text", ["x" * 100_000, '\\"' * 50_000, "\\" * 100_001, "안녕" * 30_000, '"}' * 40_000, "\n" * 9000]
)
def test_long_text_is_not_looked_at_and_hides_nothing(text: str) -> None:
    """Quotes and backslashes in it end nothing: what stands behind it is still found."""
    for ascii_only in (True, False):
        fields = {"messages": [{"content": [{"type": "text", "text": text}, {"video_url": GOOD}]}]}
        POLICY.check(json.dumps(fields, ensure_ascii=ascii_only).encode())
        fields["messages"][0]["content"].append({"video_url": BAD})
        raw = json.dumps(fields, ensure_ascii=ascii_only).encode()
        assert json.loads(refused(raw).body)["error"]["param"] == "messages[0].content[2].video_url"


def test_more_structure_than_a_parser_should_take_is_413() -> None:
    """A body that would keep the event loop for seconds is refused in the time that it takes to search it."""
    POLICY.check(body("x" * (LONG_STRING_BYTES - 100)) + b" " * (SKELETON_BYTES - LONG_STRING_BYTES))
    for unit in (b"[],", b'"",', b'"' + b'\\"' * 1000 + b'",'):
        problem = refused(b'{"messages": [' + unit * (10_000_000 // len(unit)) + b"1]}")
        assert (problem.status, problem.type) == (413, "too_large")


@pytest.mark.parametrize(
    ("settings", "is_on"),
    [
        ({}, False),
        ({"gateway_media_domains": "none"}, True),
        ({"gateway_media_domains": "cdn.example.org"}, True),
        ({"gateway_max_fps": 2}, True),
        ({"gateway_max_num_frames": 2}, True),
    ],
)
def test_a_policy_is_made_when_it_is_asked_for(settings: dict[str, Any], is_on: bool) -> None:
    """One of three settings; without a list of hosts, every remote URL is refused."""
    policy = MediaPolicy.of(Settings(_env_file=None, vllm_base_url="http://x/v1", **settings))
    assert (policy is not None) == is_on
    if policy is not None:
        policy.check(body({"video_url": DATA}))
        refused(body({"video_url": "file:///etc/passwd"}), policy)
        if settings.get("gateway_media_domains") != "cdn.example.org":
            refused(body({"video_url": GOOD}), policy)
