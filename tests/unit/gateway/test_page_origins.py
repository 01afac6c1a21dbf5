"""Whose web pages may use a gateway without keys."""

from __future__ import annotations

import pytest

from vision_bench.gateway.page_origins import may_drive

OURS = ("https://video.example.org", "chrome-extension://abc")


@pytest.mark.parametrize(
    ("origin", "site", "host"),
    [
        (None, None, "anything.example"),  # a program: curl, a client library, a proxy's check
        ("http://127.0.0.1:8001", None, "127.0.0.1:8001"),
        ("http://127.0.0.1:8001", "same-origin", "127.0.0.1:8001"),
        ("http://[::1]:8001", None, "[::1]:8001"),
        ("http://localhost:8001", None, "LOCALHOST:8001"),
        ("http://192.168.1.5", None, "192.168.1.5:80"),
        ("http://gpubox:8001", None, "gpubox:8001"),
        ("http://gpubox.local:8001", None, "gpubox.local"),  # a proxy that leaves the port out of Host
        (None, "none", "127.0.0.1:8001"),  # typed by the user
        ("https://gpu.example.com", "same-origin", "127.0.0.1:8001"),  # a TLS proxy that writes its own Host
        ("https://gpu.example.com", None, "gpu.example.com"),  # one that keeps it, for a WebSocket
        ("https://video.example.org", "cross-site", "127.0.0.1:8001"),
        ("chrome-extension://abc", None, "127.0.0.1:8001"),
    ],
)
def test_programs_own_pages_and_named_ones_may(origin: str | None, site: str | None, host: str) -> None:
    """No header of a browser, the page's own origin under a name that is nobody's, or one that the operator named."""
    assert may_drive(origin, site=site, host=host, origins=OURS)


@pytest.mark.parametrize(
    ("origin", "site", "host"),
    [
        ("https://evil.example", "cross-site", "127.0.0.1:8001"),
        ("https://evil.example", None, "127.0.0.1:8001"),  # a browser without Sec-Fetch-Site
        (None, "cross-site", "127.0.0.1:8001"),
        ("http://localhost:3000", "same-site", "localhost:8001"),  # another program's page on this machine
        ("http://localhost:3000", None, "localhost:8001"),
        ("http://localhost:8001", "same-site", "127.0.0.1:8001"),
        ("http://evil.example:8001", None, "evil.example:8001"),  # DNS rebinding: its name stands for this machine now
        ("http://evil.example", None, "evil.example"),
        ("http://127.0.0.1.evil.example:8001", None, "127.0.0.1.evil.example:8001"),
        ("http://localhost.evil.example:8001", None, "localhost.evil.example:8001"),
        ("http://evil.example.:8001", None, "evil.example.:8001"),
        ("null", None, "127.0.0.1:8001"),  # a frame in a sandbox, a file
        ("null", "cross-site", "127.0.0.1:8001"),
        ("", None, ""),
        ("http://", None, ""),
        ("http://[::1", None, "[::1"),
        ("http://127.0.0.1:x", None, "127.0.0.1:x"),
        ("https://video.example.org.evil.example", "cross-site", "127.0.0.1:8001"),
        ("chrome-extension://other", "cross-site", "127.0.0.1:8001"),
        ("ftp://127.0.0.1:8001", None, "127.0.0.1:8001"),
    ],
)
def test_a_strangers_page_may_not(origin: str | None, site: str | None, host: str) -> None:
    """Not by its origin, not by a name that was pointed at this machine, not without an origin of its own."""
    assert not may_drive(origin, site=site, host=host, origins=OURS)
