"""Hosts in media URLs, in every notation that some library or resolver takes."""

from __future__ import annotations

import pytest

from vision_bench.gateway.media_hosts import HostList, why_not

ALLOWED = HostList(
    ["cdn.example.org", ".media.example.net", "*.clips.example.net", "93.184.216.34", "[2606:4700::1111]"]
)


@pytest.mark.parametrize(
    "url",
    [
        "http://cdn.example.org/clip.mp4",
        "https://cdn.example.org",
        "HTTPS://CDN.Example.ORG/clip.mp4?a=b&c=d@e#f",
        "http://cdn.example.org./clip.mp4",
        "http://cdn.example.org:8080/clip.mp4",
        "http://cdn.example.org?q=http://127.0.0.1/",
        "http://a.media.example.net/x",
        "http://a.b.media.example.net/x",
        "http://seoul.clips.example.net/x",
        "http://93.184.216.34/x",
        "http://[2606:4700::1111]:80/x",
        "http://[2606:4700:0:0::1111]/x",
        "https://cdn.example.org/영상.mp4",
    ],
)
def test_a_listed_host_may_be_fetched(url: str) -> None:
    """By name, below a name, by address; letters in any case, a dot at the end, any port."""
    assert why_not(url, ALLOWED) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/",
        "http://x.cdn.example.org/",
        "http://media.example.net/",
        "http://evilmedia.example.net/",
        "http://cdn.example.org.evil.example/",
        "http://evil.example/cdn.example.org",
        "http://evil.example/?@cdn.example.org",
        "http://8.8.8.8/",
    ],
)
def test_another_host_may_not(url: str) -> None:
    """A list of names is not a list of their parents, children or look-alikes."""
    assert "GATEWAY_MEDIA_DOMAINS" in (why_not(url, ALLOWED) or "")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "file://cdn.example.org/etc/passwd",
        "ftp://cdn.example.org/",
        "gopher://cdn.example.org/",
        "httpx://cdn.example.org/",
        "http:cdn.example.org",
        "http:/cdn.example.org",
        "http:///cdn.example.org",
        "//cdn.example.org/",
        "cdn.example.org/clip.mp4",
        "",
        " http://cdn.example.org/",
        "\thttp://cdn.example.org/",
        "\x00http://cdn.example.org/",
        "http://cdn.example.org/ x",
        "http://cdn.example.org/\r\nHost: evil",
        "http://cdn.example.org\\@evil.example/",
        "http://evil.example\\.cdn.example.org/",
        "http://cdn.example.org@evil.example/",
        "http://user:password@cdn.example.org/",
        "http://cdn.example.org:80@evil.example/",
        "http://cdn.example.org:x/",
        "http://cdn.example.org:999999/",
        "http://cdn%2eexample%2eorg/",
        "http://cdn.example.org%00.evil.example/",
        "http://cdn.example.org%2f@evil.example/",
        "http://cdn。example。org/",
        "http://ｃｄｎ.example.org/",
        "http://cdn.ex\u00adample.org/",
        "http://cdn..example.org/",
        "http://-cdn.example.org/",
        "http://cdn.example.org../",
        "http://[::1/",
        "http://[cdn.example.org]/",
        "http://[2606:4700::1111%25eth0]/",
        "http://[2606:4700::1111%eth0]/",
    ],
)
def test_what_libraries_read_differently_may_not(url: str) -> None:
    """Other schemes, blanks, user names, backslashes, escapes and letters in the host, zone ids: never, whatever the
    list says."""
    assert why_not(url, ALLOWED)


PRIVATE = [
    "127.0.0.1", "127.1", "127.0.0.1.", "2130706433", "0x7f000001", "0x7f.1", "0x7f.0x0.0x0.0x1", "0177.0.0.1",
    "017700000001", "127.00.00.01", "0", "0.0.0.0", "0x", "10.0.0.1", "10.1", "172.16.0.1", "192.168.1.1",
    "169.254.169.254", "2852039166", "100.64.0.1", "198.18.0.1", "192.0.0.1", "224.0.0.1", "255.255.255.255",
    "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:10.0.0.1]", "[::10.0.0.1]", "[fe80::1]",
    "[fc00::1]", "[fd00:ec2::254]", "[fec0::1]", "[ff02::1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]",
    "[2001:0:1::1]", "[2001:db8::1]", "[100::1]", "localhost", "LOCALHOST", "localhost.", "x.localhost",
    "localhost.localdomain", "metadata.google.internal",
]  # fmt: skip


@pytest.mark.parametrize("host", PRIVATE)
def test_a_private_address_may_never(host: str) -> None:
    """In every notation; and it cannot be put on the list."""
    assert why_not(f"http://{host}/latest/meta-data/", ALLOWED)
    with pytest.raises(ValueError, match=r"private|usual notation|never allowed"):
        HostList([host])


@pytest.mark.parametrize(
    "entry", ["https://cdn.example.org", "cdn.example.org/x", "a b", "*", ".", "", "*.*", ".10", "a:1"]
)
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    """At the start, not at the first request."""
    with pytest.raises(ValueError, match=r"no host|no domain|usual notation"):
        HostList([entry])
