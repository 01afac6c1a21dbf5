"""What a stranger's session description may hold, before the library that answers it sees it."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

SDP_LIMIT_BYTES = 64 * 1024
MAX_CANDIDATES = 32
"""Each is a place that this machine sends connectivity checks to."""

_MEDIA = re.compile(r"m=(\S+)")
_CANDIDATE = re.compile(r"a=(candidate:\S+ [12] (?i:udp) [0-9]{1,10} (\S+) [0-9]{1,5} typ \S+(?: \S+ \S+)*)")


class BadSdp(ValueError):
    """A description or fragment that is not to be answered; the reason is for its sender."""


class NoRestart(BadSdp):
    """ICE is to begin anew, which is not done here: RFC 9725 has a status of its own for that."""


class Fragment(NamedTuple):
    """What a PATCH tells: candidates, each with the ``mid`` of its media, and whether these were all."""

    candidates: tuple[tuple[str, str], ...]
    ufrag: str | None
    is_last: bool


def checked_offer(text: str) -> str:
    """The offer without candidates that are no plain addresses: names would be looked up, in its sender's name.

    Raises:
        BadSdp: no offer of video alone or with sound; too many candidates.
    """
    lines = _lines(text)
    if not lines or lines[0] != "v=0":
        raise BadSdp("an offer begins with v=0")
    kinds = [match[1] for line in lines if (match := _MEDIA.match(line))]
    if "video" not in kinds:
        raise BadSdp("the offer holds no video")
    if not set(kinds) <= {"audio", "video"} or len(kinds) > 8:
        raise BadSdp("an offer may hold video and sound, eight media at most; data channels are not taken")
    if sum(line.startswith("a=candidate:") for line in lines) > MAX_CANDIDATES:
        raise BadSdp(f"more than {MAX_CANDIDATES} candidates")
    kept = [line for line in lines if not line.startswith("a=candidate:") or _usable(line)]
    return "\r\n".join(kept) + "\r\n"


def read_fragment(text: str) -> Fragment:
    """The candidates of a ``trickle-ice-sdpfrag`` that can be used.

    Raises:
        BadSdp: too many candidates.
    """
    mid, ufrag, candidates, is_last = "", None, [], False
    for line in _lines(text):
        name, _, value = line.partition(":")
        if name == "a=mid":
            mid = value
        elif name == "a=ice-ufrag":
            ufrag = value
        elif name == "a=end-of-candidates":
            is_last = True
        elif name == "a=candidate" and _usable(line):
            candidates.append((mid, value))
    if len(candidates) > MAX_CANDIDATES:
        raise BadSdp(f"more than {MAX_CANDIDATES} candidates")
    return Fragment(tuple(candidates), ufrag, is_last)


def _lines(text: str) -> list[str]:
    if len(text) > SDP_LIMIT_BYTES:
        raise BadSdp(f"longer than {SDP_LIMIT_BYTES} letters")
    if not text.isascii() or "\x00" in text:
        raise BadSdp("not ASCII")
    return [line.strip() for line in text.split("\n") if line.strip()]


def _usable(line: str) -> bool:
    match = _CANDIDATE.fullmatch(line)
    if match is None:
        return False
    try:
        address = ipaddress.ip_address(match[2])
    except ValueError:
        return False
    return not (address.is_multicast or address.is_unspecified)
