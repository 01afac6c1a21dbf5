"""Which hosts a media URL may name. Arithmetic on text: nothing is resolved, nothing is fetched.

vLLM fetches, with libraries that read a URL in their own way. So only URLs that every library reads alike pass: plain
letters up to the path, no user name, no blanks, no backslashes, a host that is a name or an address as it is usually
written.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from vision_bench.wire.addresses import Address, is_public

_URL = re.compile(r"https?://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?(?:[/?#].*)?", re.IGNORECASE)
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_OF_THE_MACHINE = ("localhost", "localdomain", "ip6-localhost", "ip6-loopback", "metadata.google.internal")


class HostList:
    """Hosts by name. ``.example.org`` and ``*.example.org`` stand for all names below it, ``example.org`` for itself.

    Names, not more: subdomains of one host often belong to many people.

    Raises:
        ValueError: an entry that is no host, or one that is never allowed.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self._exact: set[str | Address] = set()
        self._suffixes: list[str] = []
        for entry in entries:
            host = entry.strip().lower().removeprefix("*")
            if host.startswith("."):
                name = host[1:].removesuffix(".")
                if not _NAME.fullmatch(name) or _is_numeric(name):
                    raise ValueError(
                        f"{entry!r} is no domain; write example.org, or .example.org for the names below it"
                    )
                self._suffixes.append(f".{name}")
            else:
                self._exact.add(_host(host))

    def __contains__(self, host: str | Address) -> bool:
        if host in self._exact:
            return True
        return isinstance(host, str) and any(host.endswith(suffix) for suffix in self._suffixes)


def why_not(url: str, allowed: HostList) -> str | None:
    """Why this URL may not be fetched; None if it may. The reason names its host, never its path or query."""
    found = _URL.fullmatch(url)
    if found is None or not url.isprintable() or " " in url or "\\" in url:
        return (
            "must be a data: URL, or a plain http:// or https:// one without user name, blanks and control characters"
        )
    try:
        host = _host(found["host"].lower())
    except ValueError as problem:
        return str(problem)
    if host not in allowed:
        return f"the host {str(host)!r} is not in GATEWAY_MEDIA_DOMAINS"
    return None


def _host(text: str) -> str | Address:
    """A name without the dot at its end, or an address that anybody on the internet may have.

    Raises:
        ValueError: neither, in words for the caller.
    """
    name = text.removesuffix(".")
    try:
        if text.startswith("["):
            address: Address = ipaddress.IPv6Address(text[1:-1])
        elif _is_numeric(name):
            address = ipaddress.IPv4Address(name)
        elif not _NAME.fullmatch(name) or len(name) > 253:
            raise ValueError
        elif any(name == reserved or name.endswith(f".{reserved}") for reserved in _OF_THE_MACHINE):
            raise ValueError(f"{name!r} is a name of the machine itself, which is never allowed")
        else:
            return name
    except ipaddress.AddressValueError:
        raise ValueError(f"{text!r} is no address in its usual notation") from None
    except ValueError as problem:
        raise ValueError(str(problem) or f"{text!r} is no host") from None
    if not is_public(address):
        raise ValueError(f"{text!r} is a private or special address, which is never allowed")
    return address


def _is_numeric(name: str) -> bool:
    """Whether some resolver takes the name for an IPv4 address: 127.0.0.1, 2130706433, 0x7f.1, 0177.1."""
    return _NUMBER.fullmatch(name.rpartition(".")[2]) is not None
