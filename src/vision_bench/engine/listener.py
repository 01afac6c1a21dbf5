"""The socket that an engine listens on."""

from __future__ import annotations

import socket

from vision_bench.errors import InvalidSettings

BACKLOG = 2048
"""uvicorn's own; the system may hold fewer."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens: who connects before the server runs waits for it, and is not refused.

    uvicorn's own way ends the process with a bare 1 when the port is taken.

    Raises:
        InvalidSettings: the address cannot be listened on.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        raise InvalidSettings(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another with --port"
        ) from error
    return listener
