"""Where streams may be pulled from."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from vision_bench.live.allowed import AllowedHosts
from vision_bench.live.failures import StreamFailure

KNOWN = {
    "cam.example.org": ["93.184.216.34"],
    "inside.example.org": ["10.0.0.5"],
    "both.example.org": ["10.0.0.5", "93.184.216.35"],
    "sub.cams.net": ["93.184.216.36"],
    "localhost": ["127.0.0.1"],
}


def _look_up(host: str, port: int) -> Sequence[str]:
    if host not in KNOWN:
        raise OSError("unknown")
    return KNOWN[host]


def _allowed(*entries: str) -> AllowedHosts:
    return AllowedHosts(entries, look_up=_look_up)


@pytest.mark.parametrize(
    ("entries", "url", "address"),
    [
        (["cam.example.org"], "rtsp://cam.example.org/x", "93.184.216.34"),
        ([".cams.net"], "rtsp://SUB.cams.net./x", "93.184.216.36"),
        (["10.0.0.0/8"], "rtsp://inside.example.org:8554/x", "10.0.0.5"),
        (["127.0.0.1"], "rtsp://user:secret@127.0.0.1:8554/x", "127.0.0.1"),
        (["::1"], "rtsp://[::1]/x", "::1"),
        (["both.example.org"], "rtsp://both.example.org/x", "93.184.216.35"),
    ],
)
def test_what_is_listed_may_be_used(entries: list[str], url: str, address: str) -> None:
    """Names, names below a name, addresses and networks; the target is the address that was checked."""
    assert _allowed(*entries).target(url, ["rtsp"]).address == address


@pytest.mark.parametrize(
    ("entries", "url"),
    [
        ([], "rtsp://cam.example.org/x"),
        (["cam.example.org"], "rtsp://other.example.org/x"),
        (["cams.net"], "rtsp://sub.cams.net/x"),
        (["inside.example.org"], "rtsp://inside.example.org/x"),
        (["localhost"], "rtsp://localhost/x"),
        (["cam.example.org"], "rtsp://169.254.169.254/x"),
        (["cam.example.org"], "rtsp://93.184.216.34/x"),
        (["127.0.0.1"], "rtsp://2130706433/x"),
        (["cam.example.org"], "http://cam.example.org/x"),
        (["cam.example.org"], "file:///etc/passwd"),
        (["cam.example.org"], "rtsp://cam.example.org/x\ny"),
        (["cam.example.org"], "rtsp://cam.example.org:99999/x"),
        (["cam.example.org"], "rtsp://[cam.example.org/x"),
        (["cam.example.org"], "rtsp://cam.example.org@10.0.0.5/x"),
        (["cam.example.org"], ""),
    ],
)
def test_everything_else_is_refused_without_repeating_it(entries: list[str], url: str) -> None:
    """Names that are not listed, listed ones that lead inside, other schemes, and what cannot be read."""
    with pytest.raises(StreamFailure) as refused:
        _allowed(*entries).target(url, ["rtsp"])
    assert refused.value.code in ("source_refused", "source_failed")
    assert "passwd" not in refused.value.message
    assert "example.org" not in refused.value.message


def test_nobody_is_asked_about_names_that_could_not_be_allowed() -> None:
    """A caller cannot have us look up names of its choice."""
    asked: list[str] = []

    def look_up(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["93.184.216.34"]

    with pytest.raises(StreamFailure):
        AllowedHosts(["cam.example.org"], look_up=look_up).target("rtsp://tell.attacker.net/x", ["rtsp"])
    assert asked == []


@pytest.mark.parametrize("entry", ["", "http://x", "a b", "user@x", "*.example.org", "10.0.0.1/8", "x:80"])
def test_an_entry_that_is_none_is_named(entry: str) -> None:
    """With what is wrong with it."""
    with pytest.raises(ValueError, match="is no host"):
        AllowedHosts([entry])
