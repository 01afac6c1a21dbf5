"""Files over HTTP for a play list's reader: every URL, also of a redirect, is checked before anybody connects."""

from __future__ import annotations

import http.client
import socket
import ssl
from contextlib import suppress
from typing import Any
from urllib.parse import urljoin

from vision_bench.live.allowed import AllowedHosts, Target
from vision_bench.live.failures import StreamFailure

TIMEOUT_SECONDS = 10.0
MAX_REDIRECTS = 3
FILE_LIMIT_BYTES = 64 * 1024 * 1024
SCHEMES = ("http", "https")


class Fetched:
    """One file, read as it comes; what libav's reader wants of a file.

    Raises:
        OSError: it cannot be had, or is not allowed.
    """

    def __init__(self, url: str, allowed: AllowedHosts) -> None:
        for _ in range(MAX_REDIRECTS + 1):
            connection, response = _asked(url, allowed)
            location = response.getheader("Location")
            if response.status in (301, 302, 303, 307, 308) and location:
                connection.close()
                url = urljoin(url, location)
                continue
            if response.status != 200:
                connection.close()
                raise OSError(f"status {response.status}")
            self._connection, self._response = connection, response
            self._left_bytes = FILE_LIMIT_BYTES
            return
        raise OSError("too many redirects")

    def read(self, size_bytes: int) -> bytes:
        """The next piece; empty at the end."""
        data = self._response.read(min(size_bytes, self._left_bytes))
        self._left_bytes -= len(data)
        if not self._left_bytes:
            raise OSError("the file is too long")
        return data

    def close(self) -> None:
        """Let go of the connection."""
        with suppress(OSError):
            self._connection.close()


def _asked(url: str, allowed: AllowedHosts) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    try:
        target = allowed.target(url, SCHEMES)
    except StreamFailure as failure:
        raise OSError(failure.code) from None
    parts = target.parts
    connection = _Pinned(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("GET", path, headers={"User-Agent": "vision-bench", "Accept-Encoding": "identity"})
        return connection, connection.getresponse()
    except (http.client.HTTPException, OSError, UnicodeError):
        connection.close()
        raise OSError("no answer") from None


class _Pinned(http.client.HTTPConnection):
    """A connection to the address that was checked, in the name that was asked for."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.host, target.port, timeout=TIMEOUT_SECONDS)
        self._address = target.address
        self._is_https = target.parts.scheme == "https"
        self.default_port = 443 if self._is_https else 80  # else the port would stand in Host

    def connect(self) -> None:
        connected: Any = socket.create_connection((self._address, self.port), TIMEOUT_SECONDS)
        if self._is_https:
            connected = ssl.create_default_context().wrap_socket(connected, server_hostname=self.host)
        self.sock = connected
