"""The header that carries an API key."""

from __future__ import annotations

from vision_bench.errors import InvalidRequest


def checked_key(api_key: str) -> str:
    """``api_key``, which a header can carry.

    Raises:
        InvalidRequest: it cannot. The message does not show the key.
    """
    if not (api_key.isascii() and api_key.isprintable()):
        raise InvalidRequest("the API key holds a character that no header can carry; copy it again")
    return api_key


def bearer(api_key: str | None) -> dict[str, str]:
    """The header that carries ``api_key``; none without one.

    Raises:
        InvalidRequest: the key holds what no header can.
    """
    return {"Authorization": f"Bearer {checked_key(api_key)}"} if api_key else {}
