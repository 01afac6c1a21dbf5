"""Where streams may be pulled from: names, addresses and networks that an operator listed, and nothing else.

A name is looked up here and the address that was looked at is the one that is connected to, so that a name cannot be
one address when it is asked about and another when it is used.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from vision_bench.live.failures import StreamFailure
from vision_bench.wire.addresses import Address, is_public

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Lookup = Callable[[str, int], Sequence[str]]

DEFAULT_PORTS = {"rtsp": 554, "http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Target:
    """One URL that may be used: its parts, and the address that stands behind its host's name."""

    parts: SplitResult
    host: str
    address: str
    port: int


def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name. Blocks.

    Raises:
        OSError: there is none.
    """
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class AllowedHosts:
    """``cam.example.org`` is itself, ``.example.org`` all names below it, ``192.168.1.0/24`` a network.

    A name that is listed may be any public address. A private, loopback, link-local or other special address is allowed
    only where an address or network in the list holds it, whatever name led there.

    Raises:
        ValueError: an entry that is neither.
    """

    def __init__(self, entries: Sequence[str], *, look_up: Lookup = look_up) -> None:
        self._networks: list[Network] = []
        self._names: set[str] = set()
        self._suffixes: list[str] = []
        self._look_up = look_up
        for entry in (entry.strip().lower().rstrip(".") for entry in entries):
            try:
                self._networks.append(ipaddress.ip_network(entry))
                continue
            except ValueError:
                pass
            if not entry or not entry.isascii() or any(letter in entry for letter in "/:@ *"):
                raise ValueError(f"{entry!r} is no host, no address and no network such as 192.168.1.0/24")
            if entry.startswith("."):
                self._suffixes.append(entry)
            else:
                self._names.add(entry)

    def target(self, url: str, schemes: Sequence[str]) -> Target:
        """``url`` taken apart, when it may be used. Looks a name up, which blocks.

        Raises:
            StreamFailure: ``source_refused``. The message never holds the URL.
        """
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").rstrip("."), parts.port
        except ValueError:
            raise _refused("the source's URL cannot be read") from None
        if parts.scheme not in schemes or not host or not url.isascii() or not url.isprintable() or " " in url:
            raise _refused(f"the source's URL must be a plain one of {' or '.join(schemes)}")
        port = port or DEFAULT_PORTS[parts.scheme]
        for address in self._addresses(host, port):
            if self._allows(host, address):
                return Target(parts, host, str(address), port)
        raise _refused("the source's host is not allowed here (LIVE_PULL_HOSTS)")

    def _addresses(self, host: str, port: int) -> list[Address]:
        try:
            return [ipaddress.ip_address(host)]
        except ValueError:
            pass
        if not self._is_listed(host) and not self._networks:
            return []  # nobody is asked about a name that could not be allowed
        try:
            return [ipaddress.ip_address(text.partition("%")[0]) for text in self._look_up(host, port)]
        except (OSError, UnicodeError, ValueError):
            raise StreamFailure("source_failed", "the source's host is not known") from None

    def _allows(self, host: str, address: Address) -> bool:
        if any(address.version == network.version and address in network for network in self._networks):
            return True
        return is_public(address) and self._is_listed(host)

    def _is_listed(self, host: str) -> bool:
        return host in self._names or any(host.endswith(suffix) for suffix in self._suffixes)


def _refused(message: str) -> StreamFailure:
    return StreamFailure("source_refused", message)
