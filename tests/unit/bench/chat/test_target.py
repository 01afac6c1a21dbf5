"""Addresses: the path picks the wire."""

from __future__ import annotations

import pytest

from vision_bench.bench.chat.target import read_address
from vision_bench.errors import InvalidRequest


@pytest.mark.parametrize(
    ("url", "wire", "shown", "port"),
    [
        ("http://h:8100", "completions", "http://h:8100/v1/chat/completions", 8100),
        ("http://h:8100/", "completions", "http://h:8100/v1/chat/completions", 8100),
        ("http://h/v1", "completions", "http://h/v1/chat/completions", 80),
        ("https://h/api/v1/chat/completions", "completions", "https://h/api/v1/chat/completions", 443),
        ("http://h:1/chat", "chat", "http://h:1/chat", 1),
        ("http://h:1/chat/", "chat", "http://h:1/chat", 1),
        ("http://h:1/chat/batch", "batch", "http://h:1/chat/batch", 1),
        ("http://[::1]:1/chat", "chat", "http://[::1]:1/chat", 1),
    ],
)
def test_the_path_picks_the_wire(url: str, wire: str, shown: str, port: int) -> None:
    """None and /v1 are the completions route; a trailing slash changes nothing."""
    address = read_address(url)
    assert (address.wire, address.url, address.port) == (wire, shown, port)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h:8100",
        "ftp://h/chat",
        "http:///chat",
        "http://h/metrics",
        "ws://h/chat",
        "http://h:x/",
        "http://u:p@h/chat",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    """The message names an address that would do, or the routes."""
    with pytest.raises(InvalidRequest, match="chat"):
        read_address(url)


@pytest.mark.parametrize(
    ("url", "root"),
    [("http://h", ""), ("http://h/chat", ""), ("http://h/api/v1", "/api"), ("http://h/gw/chat/batch", "/gw")],
)
def test_models_and_metrics_are_looked_for_beside_the_route(url: str, root: str) -> None:
    """A server may live under a prefix."""
    assert read_address(url).root == root
