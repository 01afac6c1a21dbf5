"""The address of a server as a user gives it, checked before anybody connects."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx

from vision_bench.errors import InvalidRequest

EXAMPLE = "http://127.0.0.1:8001"


def check_address(url: str) -> str:
    """``url`` itself.

    Raises:
        InvalidRequest: no http address: another scheme, no host, a port out of range, or not a URL at all.
    """
    try:
        urlsplit(url)  # stricter with brackets than httpx
        parts = httpx.URL(url)
        if parts.scheme not in ("http", "https"):
            raise ValueError("it starts with neither http:// nor https://")
        if not parts.host:
            raise ValueError("it names no host")
        parts.host.encode("idna")
        if parts.port is not None and not 0 < parts.port < 65536:
            raise ValueError(f"port {parts.port} is not between 1 and 65535")
    except (httpx.InvalidURL, ValueError) as problem:
        raise InvalidRequest(
            f"{url[:200]!r} is no address of a server ({problem}); give one such as {EXAMPLE}"
        ) from problem
    return url
