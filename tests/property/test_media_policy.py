"""No body that passes makes vLLM fetch what is forbidden, whatever its shape and spelling."""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from hypothesis import assume, given
from hypothesis import strategies as st

from vision_bench.gateway.exchange import Refusal
from vision_bench.gateway.media_policy import MediaPolicy

LISTED = "cdn.example.org"
POLICY = MediaPolicy([LISTED], max_fps=4)

HOSTS = st.sampled_from(
    [LISTED, LISTED.upper(), "evil.example", "127.0.0.1", "2130706433", "0x7f.1", "0177.1", "[::1]",
     "[::ffff:10.0.0.1]", "localhost", "10.1", "169.254.169.254", f"{LISTED}.evil.example", f"evil.{LISTED}", "8.8.8.8",
     "\uff11\uff12\uff17.0.0.1"]
)  # fmt: skip
DECORATED = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", " ", "\n", "\x00", "\t", "\ufeff"]),
    st.sampled_from(["http://", "HTTPS://", "http:", "http:/", "http:///", "file://", "FILE:", "ftp://",
                     "//", "", "data:", "DATA:"]),
    st.sampled_from(["", "user@", f"{LISTED}@", f"{LISTED}:80@", f"{LISTED}\\@", f"{LISTED}%2f@", "."]),
    HOSTS,
    st.sampled_from(["", "/", ".", "./x", ":80/", "?x", "#x", "\\", f"/@{LISTED}", f"@{LISTED}/", " ", "\r\n"]),
)  # fmt: skip
URLS = st.one_of(
    DECORATED, st.text(max_size=12), st.none(), st.integers(), st.just("data:video/mp4;base64," + "A" * 5000)
)
MODALITIES = st.sampled_from(["image_url", "video_url", "audio_url"])
PARTS = st.one_of(
    st.builds(lambda kind, url: {"type": kind, kind: {"url": url}}, MODALITIES, URLS),
    st.builds(lambda kind, url: {kind: url}, MODALITIES, URLS),
    st.builds(lambda kind, url, uuid: {"type": "text", kind: url, "uuid": uuid}, MODALITIES, URLS, st.text(max_size=3)),
    st.builds(lambda kind, url, uuid: {kind: {"url": url}, "uuid": uuid}, MODALITIES, URLS, st.integers()),
    st.builds(lambda url: {"type": "input_image", "image_url": url}, URLS),
    st.builds(lambda text: {"type": "text", "text": text}, st.one_of(st.text(max_size=20), st.just('"\\' * 3000))),
    st.text(max_size=5),
)
NUMBERS = st.one_of(st.integers(), st.floats(), st.text(max_size=3), st.none(), st.booleans())
BODIES = st.fixed_dictionaries(
    {"messages": st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": st.lists(PARTS)}), max_size=3)},
    optional={
        "media_io_kwargs": st.fixed_dictionaries({}, optional={"video": st.fixed_dictionaries({"fps": NUMBERS})})
    },
)


def fetched_by_vllm(body: Any) -> Iterator[Any]:
    """The URLs that vLLM's parser takes from the parts, written after its own source, not after ours."""
    for message in body["messages"]:
        for part in message["content"]:
            if not isinstance(part, dict):
                continue
            if "type" in part and part.get("uuid") is None:
                name = {"input_image": "image_url"}.get(part["type"], part["type"])
                value = part.get(name) if name.endswith("_url") else None
            else:
                value = next((part[name] for name in ("image_url", "audio_url", "video_url") if name in part), None)
            if isinstance(value, dict):
                value = value.get("url")
            if isinstance(value, str) and value[:5].lower() != "data:":
                yield value


def hosts_in(url: str) -> Iterator[str]:
    """Every host that some library could see in the URL."""
    cleaned = "".join(letter for letter in url if letter > " ")
    for text in (url, cleaned, cleaned.replace("\\", "/"), unquote(cleaned)):
        try:
            host = urlsplit(text).hostname
        except ValueError:
            continue
        if host:
            yield host.rstrip(".")


def is_forbidden(url: str) -> bool:
    if not url.lower().startswith(("http://", "https://")):
        return True
    for host in hosts_in(url):
        if host != LISTED:
            return True
        try:
            if not ipaddress.ip_address(socket.inet_aton(host)).is_global:
                return True
        except OSError:
            pass
    return False


@given(body=BODIES, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
def test_an_accepted_body_fetches_only_from_the_list(body: Any, ascii_only: bool, indent: int | None) -> None:
    """vLLM would fetch nothing but http(s) from the listed host, and decode no more frames than allowed."""
    try:
        raw = json.dumps(body, ensure_ascii=ascii_only, indent=indent).encode()
    except UnicodeEncodeError:
        assume(False)
    try:
        POLICY.check(raw)
    except Refusal as refusal:
        assert refusal.status in (400, 413)
        return
    seen = json.loads(raw)
    assert [url for url in fetched_by_vllm(seen) if is_forbidden(url)] == []
    fps = seen.get("media_io_kwargs", {}).get("video", {"fps": 1})["fps"]
    assert 0 < fps <= 4


@given(raw=st.binary(max_size=200))
def test_bytes_are_accepted_or_refused(raw: bytes) -> None:
    """Never an error of another kind, so never a 500."""
    try:
        POLICY.check(raw)
    except Refusal as refusal:
        assert refusal.status in (400, 413)
    else:
        json.loads(raw)
